"""Mutations of types, of constants' contents, and of models' parts besides the graph."""

from __future__ import annotations

import random

import onnx
from onnx import TensorProto

from mutations.places import Changes, Mutation, change_list, copied, product, some_tensor, some_value

MUTATIONS: Changes[Mutation] = Changes()
_SIZES = (0, 1, 2, 3, 5, -1, -7, 17, 2**31 - 1, 2**31, 2**40, 2**62)
_DTYPES = [*range(25), 99, -1]


@MUTATIONS.add
def _dims_of_value(decide: random.Random, model: onnx.ModelProto) -> bool:
    value = some_value(decide, model)
    if value is None or not value.type.HasField("tensor_type"):
        return False
    shape = value.type.tensor_type.shape
    what = decide.randrange(5)
    if what == 0:
        value.type.tensor_type.ClearField("shape")
    elif what == 1:
        shape.dim.add().dim_value = decide.choice(_SIZES)
    elif what == 2 and len(shape.dim):
        del shape.dim[decide.randrange(len(shape.dim))]
    elif len(shape.dim):
        dim = decide.choice(shape.dim)
        if decide.random() < 0.5:
            dim.dim_param = decide.choice(["n", "m", "", "a b", "n+1", "-1"])
        else:
            dim.dim_value = decide.choice(_SIZES)
    else:
        return False
    return True


@MUTATIONS.add
def _type_of_value(decide: random.Random, model: onnx.ModelProto) -> bool:
    value = some_value(decide, model)
    if value is None:
        return False
    what = decide.randrange(6)
    if what == 0:
        value.ClearField("type")
    elif what == 1:
        kept = copied(value.type)
        value.type.sequence_type.elem_type.CopyFrom(kept)
    elif what == 2:
        kept = copied(value.type)
        value.type.optional_type.elem_type.CopyFrom(kept)
    elif what == 3:
        value.type.map_type.key_type = decide.choice([7, 8, 99])
        value.type.map_type.value_type.tensor_type.elem_type = decide.choice([1, 7, 8, 0])
    elif value.type.HasField("tensor_type"):
        value.type.tensor_type.elem_type = decide.choice(_DTYPES)
    else:
        return False
    return True


@MUTATIONS.add
def _tensor_type(decide: random.Random, model: onnx.ModelProto) -> bool:
    tensor = some_tensor(decide, model)
    if tensor is None:
        return False
    if decide.random() < 0.5:
        tensor.data_type = decide.choice(_DTYPES)
    elif len(tensor.dims) and decide.random() < 0.7:
        tensor.dims[decide.randrange(len(tensor.dims))] = decide.choice(_SIZES)
    else:
        return change_list(decide, tensor.dims, _SIZES)
    return True


@MUTATIONS.add
def _tensor_contents(decide: random.Random, model: onnx.ModelProto) -> bool:
    """Truncated, longer, in a field of another type, or other numbers."""
    tensor = some_tensor(decide, model)
    if tensor is None:
        return False
    raw = tensor.raw_data
    what = decide.randrange(6)
    if what == 0 and raw:
        tensor.raw_data = raw[: decide.randrange(len(raw))]
    elif what == 1 and raw:
        tensor.raw_data = raw + bytes(decide.randrange(1, 20))
    elif what == 2:
        tensor.ClearField("raw_data")
        field = decide.choice(["float_data", "int32_data", "int64_data", "double_data", "uint64_data"])
        getattr(tensor, field).extend(decide.choice([[1], [1, 2, 3], [0] * max(1, product(tensor.dims) % 1000)]))
    elif what == 3:
        tensor.string_data.extend([b"text", b"\xff\xfe"])
    elif raw and what == 4:
        changed = bytearray(raw)
        changed[decide.randrange(len(changed))] ^= 1 << decide.randrange(8)
        tensor.raw_data = bytes(changed)
    elif raw:
        tensor.raw_data = bytes(len(raw))
    else:
        return False
    return True


@MUTATIONS.add
def _odd_parts(decide: random.Random, model: onnx.ModelProto) -> bool:
    """Change one of the things that models have beside their graph."""
    what = decide.randrange(6)
    if what == 0:
        model.ClearField("graph")
    elif what == 1:
        model.graph.ClearField("name")
    elif what == 2:
        model.metadata_props.add(key="a", value="b")
        model.metadata_props.add(key="a", value="c")
    elif what == 3 and model.graph.initializer:
        tensor = decide.choice(model.graph.initializer)
        model.graph.sparse_initializer.add().values.CopyFrom(tensor)
    elif what == 4 and model.graph.node:
        node = decide.choice(model.graph.node)
        body = model.functions.add(name=node.op_type, domain=decide.choice([node.domain, "local"]))
        body.input.extend(node.input)
        body.output.extend(node.output)
        body.node.append(node)
        node.domain = body.domain
    else:
        tensor = some_tensor(decide, model)
        if tensor is None:
            return False
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=decide.choice(["nowhere.bin", "", "/dev/null", "a/../../b"]))
        tensor.external_data.add(
            key=decide.choice(["offset", "length", "bogus"]), value=decide.choice(["0", "-1", "x"])
        )
    return True

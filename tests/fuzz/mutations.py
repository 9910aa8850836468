"""Changes that break models, or do not: one function for each idea, drawn by a seed.

A function takes a model apart at a place of its choice and returns whether it found one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto, helper

Mutation = Callable[[random.Random, onnx.ModelProto], bool]
MUTATIONS: list[Mutation] = []
#: What damages the file itself comes last, on its bytes.
BYTES: list[Callable[[random.Random, bytes], bytes]] = []

_NUMBERS = (0, 1, -1, 2, -2, 3, 7, 100, 65537, 2**31 - 1, 2**31, -(2**31), 2**62, -(2**63), 2**63 - 1)
_SIZES = (0, 1, 2, 3, 5, -1, -7, 17, 2**31 - 1, 2**31, 2**40, 2**62)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, 3e38, float("inf"), float("-inf"), float("nan"))
_DTYPES = [*range(25), 99, -1]
_DOMAINS = (
    "",
    "ai.onnx",
    "ai.onnx.ml",
    "com.microsoft",
    "com.ms.internal",
    "com.ms.internal.nhwc",
    "nobody",
    "ai.onnx.preview",
)
_OPERATORS = sorted({found.name for found in onnx.defs.get_all_schemas()} | {"Frobnicate", "", "ElementwiseChain"})


#: What other numbers than 0 and 1 mean here ONNX does not say, and onnxruntime takes some for 0 and some for 1.
_FLAGS = {"keepdims", "largest", "sorted", "select_last_index", "is_causal", "noop_with_empty_axes", "ceil_mode"}


def _mutation(function: Mutation) -> Mutation:
    MUTATIONS.append(function)
    return function


def mutated(seed: str, base: bytes, steps: int, kept: tuple[int, ...] | None = None) -> bytes:
    """Return a model with so many changes; `kept`: only those of these numbers, for a smaller reproduction."""
    model = onnx.ModelProto.FromString(base)
    data: bytes | None = None
    for step in range(steps):
        decide = random.Random(f"{seed}/{step}")
        if kept is not None and step not in kept:
            continue
        if decide.random() < 0.08:
            data = decide.choice(BYTES)(decide, data if data is not None else _written(model))
            continue
        if data is not None:
            continue  # the file is damaged already
        for _ in range(20):
            if decide.choice(MUTATIONS)(decide, model):
                break
    return _written(model) if data is None else data


def _written(model: onnx.ModelProto) -> bytes:
    return model.SerializePartialToString()


# --- places


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for item in node.attribute:
            for inner in (*([item.g] if item.HasField("g") else ()), *item.graphs):
                yield from _graphs(inner)


def _graph(decide: random.Random, model: onnx.ModelProto) -> onnx.GraphProto:
    return decide.choice(list(_graphs(model.graph)))


def _some(decide: random.Random, items: Any) -> Any:
    return decide.choice(list(items)) if len(items) else None


def _node(decide: random.Random, model: onnx.ModelProto) -> onnx.NodeProto | None:
    return _some(decide, [node for graph in _graphs(model.graph) for node in graph.node])


def _attribute(decide: random.Random, model: onnx.ModelProto) -> AttributeProto | None:
    return _some(decide, [item for graph in _graphs(model.graph) for node in graph.node for item in node.attribute])


def _tensor(decide: random.Random, model: onnx.ModelProto) -> TensorProto | None:
    found = [tensor for graph in _graphs(model.graph) for tensor in graph.initializer]
    for graph in _graphs(model.graph):
        for node in graph.node:
            found += [item.t for item in node.attribute if item.HasField("t")]
    return _some(decide, found)


def _value(decide: random.Random, model: onnx.ModelProto) -> onnx.ValueInfoProto | None:
    found = [v for graph in _graphs(model.graph) for v in (*graph.input, *graph.output, *graph.value_info)]
    return _some(decide, found)


def _names(model: onnx.ModelProto) -> list[str]:
    found = [""]
    for graph in _graphs(model.graph):
        found += [v.name for v in (*graph.input, *graph.output, *graph.initializer)]
        found += [name for node in graph.node for name in (*node.input, *node.output)]
    return [*dict.fromkeys(found), "nobody"]


def _swap(decide: random.Random, items: Any) -> bool:
    if len(items) < 2:
        return False
    a, b = decide.sample(range(len(items)), 2)
    kept = list(items)
    kept[a], kept[b] = kept[b], kept[a]
    _fill(items, kept)
    return True


def _fill(items: Any, contents: list[Any]) -> None:
    copies = [_copy(each) for each in contents]
    del items[:]
    items.extend(copies)


def _copy(each: Any) -> Any:
    if hasattr(each, "CopyFrom"):
        made = type(each)()
        made.CopyFrom(each)
        return made
    return each


def _reorder_drop_or_repeat(decide: random.Random, items: Any) -> bool:
    if not len(items):
        return False
    what = decide.choice(["drop", "repeat", "swap"])
    if what == "swap":
        return _swap(decide, items)
    at = decide.randrange(len(items))
    kept = list(items)
    if what == "drop":
        del kept[at]
    else:
        kept.insert(decide.randrange(len(kept) + 1), kept[at])
    _fill(items, kept)
    return True


# --- changes of the graph


@_mutation
def _inputs_of_node(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = _node(decide, model)
    return node is not None and _reorder_drop_or_repeat(decide, node.input)


@_mutation
def _outputs_of_node(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = _node(decide, model)
    return node is not None and _reorder_drop_or_repeat(decide, node.output)


@_mutation
def _other_input(decide: random.Random, model: onnx.ModelProto) -> bool:
    """Cycles, values of other types and of other graphs, inputs left out."""
    node = _node(decide, model)
    if node is None:
        return False
    name = decide.choice(_names(model))
    if node.input and decide.random() < 0.7:
        node.input[decide.randrange(len(node.input))] = name
    else:
        node.input.append(name)
    return True


@_mutation
def _other_output(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = _node(decide, model)
    if node is None:
        return False
    name = decide.choice(_names(model))
    if node.output and decide.random() < 0.7:
        node.output[decide.randrange(len(node.output))] = name
    else:
        node.output.append(name)
    return True


@_mutation
def _nodes(decide: random.Random, model: onnx.ModelProto) -> bool:
    return _reorder_drop_or_repeat(decide, _graph(decide, model).node)


@_mutation
def _interface(decide: random.Random, model: onnx.ModelProto) -> bool:
    graph = _graph(decide, model)
    return _reorder_drop_or_repeat(decide, decide.choice([graph.input, graph.output, graph.initializer]))


@_mutation
def _value_to_constant(decide: random.Random, model: onnx.ModelProto) -> bool:
    graph = _graph(decide, model)
    value = _some(decide, graph.input)
    if value is None or not value.type.tensor_type.HasField("shape"):
        return False
    dims = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
    kind = value.type.tensor_type.elem_type
    if (
        kind not in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8)
        or _product(dims) > 9999
    ):
        return False
    contents = [decide.choice([0, 1, 2, 3]) for _ in range(_product(dims))]
    graph.initializer.append(helper.make_tensor(value.name, kind, dims, contents))
    if decide.random() < 0.8:
        graph.input.remove(value)
    return True


@_mutation
def _name(decide: random.Random, model: onnx.ModelProto) -> bool:
    value = _value(decide, model)
    if value is None:
        return False
    value.name = decide.choice(_names(model))
    return True


@_mutation
def _operator(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = _node(decide, model)
    if node is None:
        return False
    if decide.random() < 0.7:
        node.op_type = decide.choice(_OPERATORS)
    else:
        node.domain = decide.choice(_DOMAINS)
    return True


@_mutation
def _versions(decide: random.Random, model: onnx.ModelProto) -> bool:
    if decide.random() < 0.2:
        model.ir_version = decide.choice([0, 1, 2, 3, 4, 6, 9, 13, 14, 99, 2**40])
    elif model.opset_import and decide.random() < 0.7:
        model.opset_import[0].version = decide.choice([0, 1, 5, 7, 9, 11, 13, 17, 18, 21, 22, 23, 26, 99, -1])
    elif decide.random() < 0.5:
        return _reorder_drop_or_repeat(decide, model.opset_import)
    else:
        model.opset_import.append(helper.make_opsetid(decide.choice(_DOMAINS), decide.choice([1, 2, 3, 13, 21])))
    return True


@_mutation
def _nested(decide: random.Random, model: onnx.ModelProto) -> bool:
    """A node goes into the branches of an If, or into the body of a Loop."""
    graph = _graph(decide, model)
    if not graph.node:
        return False
    at = decide.randrange(len(graph.node))
    node = _copy(graph.node[at])
    outer = [f"{name}_outer" if decide.random() < 0.9 else name for name in node.output]
    bodies = [
        helper.make_graph([_copy(node)], branch, [], [onnx.ValueInfoProto(name=name) for name in node.output])
        for branch in ("then_branch", "else_branch")
    ]
    truth = helper.make_tensor("truth", TensorProto.BOOL, [], [decide.random() < 0.5])
    graph.initializer.append(truth)
    made = helper.make_node("If", ["truth"], list(node.output), **{body.name: body for body in bodies})
    if decide.random() < 0.3:
        for body in bodies:
            for value, name in zip(body.node[0].output, outer, strict=True):
                body.node[0].output[list(body.node[0].output).index(value)] = name
    graph.node[at].CopyFrom(made)
    return True


# --- attributes


@_mutation
def _attributes_of_node(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = _node(decide, model)
    return node is not None and _reorder_drop_or_repeat(decide, node.attribute)


@_mutation
def _number(decide: random.Random, model: onnx.ModelProto) -> bool:
    item = _attribute(decide, model)
    if item is None:
        return False
    if item.type == AttributeProto.INT:
        item.i = decide.choice((0, 1) if item.name in _FLAGS else _NUMBERS)
    elif item.type == AttributeProto.FLOAT:
        item.f = decide.choice(_FLOATS)
    elif item.type == AttributeProto.INTS:
        return _change_list(decide, item.ints, _NUMBERS)
    elif item.type == AttributeProto.FLOATS:
        return _change_list(decide, item.floats, _FLOATS)
    elif item.type == AttributeProto.STRING:
        item.s = _text(decide, item.s)
    elif item.type == AttributeProto.STRINGS:
        return _change_list(decide, item.strings, (b"", b"x", b"\xff\xfe", b"relu", b"a" * 1000))
    else:
        return False
    return True


def _change_list(decide: random.Random, items: Any, pool: tuple[Any, ...]) -> bool:
    if len(items) and decide.random() < 0.5:
        items[decide.randrange(len(items))] = decide.choice(pool)
        return True
    if decide.random() < 0.5:
        return _reorder_drop_or_repeat(decide, items)
    items.append(decide.choice(pool))
    return True


def _text(decide: random.Random, text: bytes) -> bytes:
    return decide.choice(
        [b"", b"\xff\xfe\xfd", text.upper(), text.lower(), text + b"x", b"linear", b"SAME_UPPER", b"\0"]
    )


@_mutation
def _type_of_attribute(decide: random.Random, model: onnx.ModelProto) -> bool:
    item = _attribute(decide, model)
    if item is None:
        return False
    if decide.random() < 0.3:
        item.type = decide.choice(range(15))
    elif decide.random() < 0.3:
        item.ref_attr_name = "outer"
    else:
        value: Any = decide.choice([1, 0.5, "text", [1, 2], [0.5], ["a", "b"]])
        item.CopyFrom(helper.make_attribute(item.name, value))
    return True


@_mutation
def _new_attribute(decide: random.Random, model: onnx.ModelProto) -> bool:
    """One that the operator knows, or does not."""
    node = _node(decide, model)
    if node is None:
        return False
    try:
        known = list(onnx.defs.get_schema(node.op_type, domain=node.domain).attributes)
    except onnx.defs.SchemaError:
        known = []
    name = decide.choice([*known, *known, "axis", "bogus"])
    value: Any = decide.choice([0, 1, -1, 2, 7, 2**40, 0.5, -3.0, "text", "SAME_LOWER", [0], [1, 1], [2, 2, 2], [0.5]])
    if name in _FLAGS:
        value = decide.choice([0, 1])
    node.attribute.append(helper.make_attribute(name, value))
    return True


# --- types and contents


@_mutation
def _dims_of_value(decide: random.Random, model: onnx.ModelProto) -> bool:
    value = _value(decide, model)
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


@_mutation
def _type_of_value(decide: random.Random, model: onnx.ModelProto) -> bool:
    value = _value(decide, model)
    if value is None:
        return False
    what = decide.randrange(6)
    if what == 0:
        value.ClearField("type")
    elif what == 1:
        kept = _copy(value.type)
        value.type.sequence_type.elem_type.CopyFrom(kept)
    elif what == 2:
        kept = _copy(value.type)
        value.type.optional_type.elem_type.CopyFrom(kept)
    elif what == 3:
        value.type.map_type.key_type = decide.choice([7, 8, 99])
        value.type.map_type.value_type.tensor_type.elem_type = decide.choice([1, 7, 8, 0])
    elif value.type.HasField("tensor_type"):
        value.type.tensor_type.elem_type = decide.choice(_DTYPES)
    else:
        return False
    return True


@_mutation
def _tensor_type(decide: random.Random, model: onnx.ModelProto) -> bool:
    tensor = _tensor(decide, model)
    if tensor is None:
        return False
    if decide.random() < 0.5:
        tensor.data_type = decide.choice(_DTYPES)
    elif len(tensor.dims) and decide.random() < 0.7:
        tensor.dims[decide.randrange(len(tensor.dims))] = decide.choice(_SIZES)
    else:
        return _change_list(decide, tensor.dims, _SIZES)
    return True


@_mutation
def _tensor_contents(decide: random.Random, model: onnx.ModelProto) -> bool:
    """Cut short, longer, in a field of another type, or other numbers."""
    tensor = _tensor(decide, model)
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
        getattr(tensor, field).extend(decide.choice([[1], [1, 2, 3], [0] * max(1, _product(tensor.dims) % 1000)]))
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


def _product(dims: Any) -> int:
    count = 1
    for dim in dims:
        count *= abs(dim)
    return count


@_mutation
def _odd_parts(decide: random.Random, model: onnx.ModelProto) -> bool:
    """What models have beside their graph."""
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
        tensor = _tensor(decide, model)
        if tensor is None:
            return False
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=decide.choice(["nowhere.bin", "", "/dev/null", "a/../../b"]))
        tensor.external_data.add(
            key=decide.choice(["offset", "length", "bogus"]), value=decide.choice(["0", "-1", "x"])
        )
    return True


# --- the file


def _bytes(function: Callable[[random.Random, bytes], bytes]) -> Callable[[random.Random, bytes], bytes]:
    BYTES.append(function)
    return function


@_bytes
def _flip(decide: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(decide.choice([1, 1, 1, 2, 5]) if data else 0):
        changed[decide.randrange(len(changed))] ^= 1 << decide.randrange(8)
    return bytes(changed)


@_bytes
def _not_text(decide: random.Random, data: bytes) -> bytes:
    """A letter becomes a byte that no text has: names, operators, domains, strings."""
    letters = [i for i, byte in enumerate(data) if chr(byte).isascii() and chr(byte).isalpha()]
    if not letters:
        return data
    at = decide.choice(letters)
    return data[:at] + b"\xff" + data[at + 1 :]


@_bytes
def _cut(decide: random.Random, data: bytes) -> bytes:
    return data[: decide.randrange(len(data))] if data else data


@_bytes
def _repeat(decide: random.Random, data: bytes) -> bytes:
    """Protobuf merges what comes twice."""
    at = decide.randrange(len(data)) if data else 0
    return data + data[at:]

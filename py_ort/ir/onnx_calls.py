"""ONNX's C++: the types of a node's outputs, function bodies, inlining. No other module calls it.

It trusts models. Sizes below zero, attributes that no axis can have, attributes that contradict the outputs, and types
that are not known end the process: by assertions of libstdc++, by reads beyond vectors, or by all memory being taken.
So it sees negative sizes as unknown ones, and whatever else is out of the ordinary goes to a process that may die.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
import onnx_ir as ir

from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import ints
from py_ort.ir.long_list import LongList
from py_ort.ir.onnx_process import Died, Refused, onnx_process
from py_ort.ir.operators import operator
from py_ort.ir.rules import Rules
from py_ort.ir.value_types import Inferred, value_type

_DATA_LIMIT = 1024  # elements: constants up to this size are shown to ONNX's inference (shapes, axes, pads, scales)
_LARGEST = 1 << 31  # attributes of integers are below it
_DIVISORS = frozenset({"blocksize", "group", "kv_num_heads", "num_groups", "num_heads", "num_outputs", "q_num_heads"})
_LONGEST = 1 << 10  # elements of shapes: ONNX's inference makes a dimension of each
_WHOLE_MODEL = 60.0  # seconds
#: Prefixes of the attributes that describe a tree ensemble; types never depend on them.
_TREES = ("nodes_", "leaf_", "target_", "class_")
_DEADLY = "ONNX's inference of it ends the process: its attributes and the sizes of its inputs contradict each other"


def infer_outputs(node: ir.Node, schema: Any, version: int, *, strict: bool) -> list[Inferred | None]:
    """Return the type of each output, None where it is not known.

    Args:
        node: A node whose inputs were inferred before.
        schema: ONNX's schema of its operator.
        version: The opset.
        strict: Raise what ONNX says of inconsistent inputs.

    Raises:
        InvalidGraph: With `strict`, the inputs do not fit the operator.
    """
    key = _key(node, schema, version)
    known = None if key is None else _answers.get(key)
    if known is not None:
        return known
    types: dict[str, Any] = {}
    data: dict[str, Any] = {}
    proto = _node_proto(node, types, data)
    try:
        if _is_ordinary(node, proto):
            imports = [onnx.helper.make_opsetid(node.domain, version)]
            found: dict[str, Any] = onnx.shape_inference.infer_node_outputs(
                schema, proto, types, data, opset_imports=imports
            )
        else:
            found = _inferred_elsewhere(proto, schema, types, data, version)
    except (onnx.shape_inference.InferenceError, Refused, Died) as e:
        if strict and not (isinstance(e, Refused) and e.kind != "InferenceError"):
            raise inconsistent(node, _DEADLY if isinstance(e, Died) else str(e)) from e
        key, found = None, {}
    except Exception:  # the C++ side raises several types
        key, found = None, {}
    protos = (found.get(f"o{i}") for i in range(len(node.outputs)))
    answer = [None if proto is None else Inferred.of(proto) for proto in protos]
    if key is not None:
        if len(_answers) == _MOST_ANSWERS:
            _answers.clear()
        _answers[key] = answer
    return answer


#: Results of ONNX's inference, by all that it depends on: models repeat their layers.
_answers: dict[Any, list[Inferred | None]] = {}
_MOST_ANSWERS = 4096


def _key(node: ir.Node, schema: Any, version: int) -> Any | None:
    """Return a key of all that ONNX infers from; None if it is large, or perhaps incomplete."""
    told: list[Any] = [schema, version, len(node.outputs)]
    for value in node.inputs:
        if value is None:
            told.append(None)
            continue
        kind, shape = value.type, value.shape
        if value.const_value is not None or not isinstance(kind, ir.TensorType):
            return None
        told.append(kind.dtype)
        told.append(None if shape is None else tuple(d if isinstance(d, int) else d.value for d in shape))
    for item in node.attributes.values():
        if item.type not in _PLAIN or item.is_ref():
            return None
        value = item.value
        told += (item.name, item.type, tuple(value) if isinstance(value, list) else value)
    found = tuple(told)
    try:
        hash(found)
    except TypeError:
        return None
    return found


_PLAIN = frozenset(ir.AttributeType[name] for name in ("INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS"))


def _inferred_elsewhere(
    proto: onnx.NodeProto, schema: Any, types: dict[str, Any], data: dict[str, Any], version: int
) -> dict[str, Any]:
    if any(name and name not in types for name in proto.input):
        return {}
    parts = [{name: item.SerializeToString() for name, item in each.items()} for each in (types, data)]
    found = onnx_process.ask("infer_node", _name(schema), proto.SerializeToString(), *parts, version)
    return {name: onnx.TypeProto.FromString(item) for name, item in found.items()}


def dependent_body(node: ir.Node, schema: Any, newest: int) -> bytes | None:
    """Return the function body that an operator has for these types of inputs, a FunctionProto, or None.

    Args:
        node: The node.
        schema: ONNX's schema of its operator.
        newest: The opset up to which the body may be.
    """
    types: dict[str, Any] = {}
    proto = _node_proto(node, types, {}, graphs=True)
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= newest]
    if not versions or any(name and name not in types for name in proto.input):
        return None
    serialized = [types.get(name, onnx.TypeProto()).SerializeToString() for name in proto.input]
    arguments = (max(versions), proto.SerializeToString(), serialized)
    try:
        if _is_ordinary(node, proto):
            found: bytes = schema.get_context_dependent_function_with_opset_version(*arguments)
        else:
            found = onnx_process.ask("function_body", _name(schema), *arguments)
    except Exception:  # the C++ side's complaint about types that it does not take, or its end
        return None
    return found or None


def infer_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types that ONNX infers.

    Raises:
        Refused, Died: ONNX finds fault with the model.
    """
    return onnx.ModelProto.FromString(onnx_process.ask("infer_model", model.SerializeToString(), patience=_WHOLE_MODEL))


def inline_functions(model: onnx.ModelProto, functions: Sequence[tuple[str, str]]) -> onnx.ModelProto:
    """Return the model with the bodies of functions, named by domain and name, where they are called.

    Raises:
        Refused, Died: ONNX finds fault with the model.
    """
    arguments = (model.SerializeToString(), list(functions))
    return onnx.ModelProto.FromString(onnx_process.ask("inline", *arguments, patience=_WHOLE_MODEL))


def convert_version(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Return the model in another opset.

    Raises:
        Refused, Died: ONNX finds fault with the model.
    """
    arguments = (model.SerializeToString(), opset)
    return onnx.ModelProto.FromString(onnx_process.ask("convert", *arguments, patience=_WHOLE_MODEL))


def _name(schema: Any) -> tuple[str, int, str]:
    return schema.name, schema.since_version, schema.domain


def _node_proto(node: ir.Node, types: dict[str, Any], data: dict[str, Any], *, graphs: bool = False) -> onnx.NodeProto:
    """Describe the node to ONNX under short names: i0, i1, … and o0, o1, …; its inputs go into `types` and `data`."""
    proto = onnx.NodeProto()
    proto.op_type = node.op_type
    proto.domain = node.domain
    for i, value in enumerate(node.inputs):
        type_proto = None if value is None else value_type(value)
        name = "" if value is None else f"i{i}"
        proto.input.append(name)
        if value is None or type_proto is None:
            continue
        types[name] = type_proto
        if value.const_value is not None and value.const_value.size <= _DATA_LIMIT:
            data[name] = _tensor_proto(value.const_value)
    proto.output.extend(f"o{i}" for i in range(len(node.outputs)))
    for item in node.attributes.values():
        if not item.is_ref() and (graphs or item.type not in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)):
            if isinstance(item, LongList) and item.name.startswith(_TREES):
                continue
            proto.attribute.append(ir.serde.serialize_attribute(item))
    return proto


def _tensor_proto(tensor: ir.TensorProtocol) -> onnx.TensorProto:
    if tensor.dtype == ir.DataType.STRING:
        return ir.to_proto(tensor)
    return onnx.TensorProto(data_type=int(tensor.dtype), dims=tensor.shape.numpy(), raw_data=tensor.tobytes())


def _is_ordinary(node: ir.Node, proto: onnx.NodeProto) -> bool:
    """Return True if ONNX's C++ survives the node, as drawn nodes of all its schemas show (tests/unit/ops)."""
    for item in proto.attribute:
        kind = item.type
        if kind == onnx.AttributeProto.INT:
            if not (1 if item.name in _DIVISORS else -_LARGEST) <= item.i < _LARGEST:
                return False
        elif kind == onnx.AttributeProto.INTS and not all(-_LARGEST <= each < _LARGEST for each in item.ints):
            return False
    contradicts = _contradicts.of(node)
    if contradicts is not None and contradicts(node, proto):
        return False
    for index in operator(node.domain, node.op_type).host:
        value = node.inputs[index] if index < len(node.inputs) else None
        shape = None if value is None or value.dtype != ir.DataType.INT64 else value.shape
        if shape and isinstance(shape[0], int) and shape[0] > _LONGEST:
            return False
    return True


_contradicts = Rules[Callable[[ir.Node, onnx.NodeProto], bool]]()
"""Does a node have attributes that end ONNX's C++, of any version that py_ort works with?"""


def _number(proto: onnx.NodeProto, name: str, default: int) -> int:
    return next((item.i for item in proto.attribute if item.name == name), default)


@_contradicts("GatherND")
def _batches_below_zero(node: ir.Node, proto: onnx.NodeProto) -> bool:
    return _number(proto, "batch_dims", 0) < 0


@_contradicts("Split")
def _other_outputs(node: ir.Node, proto: onnx.NodeProto) -> bool:
    return _number(proto, "num_outputs", len(proto.output)) != len(proto.output)


@_contradicts("SplitToSequence")
def _parts_of_nothing(node: ir.Node, proto: onnx.NodeProto) -> bool:
    sizes = ints(node.inputs[1]) if len(node.inputs) > 1 else None
    return sizes is not None and min(sizes, default=1) < 1


_STEPS = ("kernel_shape", "strides", "dilations")
_OF_WINDOWS = (*_STEPS, "pads", "output_padding", "output_shape")


@_contradicts(
    *("Conv", "ConvInteger", "ConvTranspose", "DeformConv", "QLinearConv"),
    *("AveragePool", "LpPool", "MaxPool", "MaxUnpool"),
)
def _odd_window(node: ir.Node, proto: onnx.NodeProto) -> bool:
    """Return True for steps of nothing, and for lists or weights that do not have the image's axes."""
    ranks = [None if v is None or v.shape is None else len(v.shape) for v in node.inputs]
    rank, other = (ranks[i] if i < len(ranks) else None for i in (0, 3 if node.op_type == "QLinearConv" else 1))
    if rank is not None and (rank < 3 or other not in (None, rank)):
        return True
    axes: float | None = None if rank is None else rank - 2
    for item in proto.attribute:
        if item.name not in _OF_WINDOWS:
            continue
        if item.name in _STEPS and min(item.ints, default=1) < 1:
            return True
        count = len(item.ints) / (2 if item.name == "pads" else 1)
        axes = count if axes is None else axes
        if count != axes:
            return True
    return False

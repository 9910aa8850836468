"""Maps at a model's border: scikit-learn's exports end in a ZipMap, some begin with a CastMap or a DictVectorizer.

No kernel knows maps. Their nodes become Identity or Cast in the file's protobuf, before the IR (which has no maps)
reads it, and the session makes the maps of the tensors, or the tensors of the maps: `py_ort.runtime.values.maps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import onnx

from py_ort.exceptions import InvalidGraph, NotImplemented
from py_ort.ir.rules import Rules
from py_ort.wire.tensors import TYPE_NAMES

_ML = "ai.onnx.ml"
_CAST_TO = {
    b"TO_FLOAT": onnx.TensorProto.FLOAT,
    b"TO_INT64": onnx.TensorProto.INT64,
    b"TO_STRING": onnx.TensorProto.STRING,
}
_KEY_TYPES = (onnx.TensorProto.INT64, onnx.TensorProto.STRING)
_MOST_KEYS = 1 << 24


@dataclass(frozen=True)
class MapForm:
    """How an input or output that is made of maps goes through the page.

    Attributes:
        type: Its type in ONNX's words: "map(int64,tensor(float))".
        keys: The key of each column of the tensor; empty for a column per key that comes, in their order.
    """

    type: str
    keys: tuple[int | str, ...] = ()


def take_maps(model: onnx.ModelProto) -> dict[str, MapForm]:
    """Replace maps by tensors.

    Args:
        model: Changed in place where it has maps.

    Returns:
        The inputs and outputs that were maps, by name.

    Raises:
        NotImplemented: A map goes elsewhere than from a ZipMap to an output, or from an input to one CastMap or
            DictVectorizer.
        InvalidGraph: A node of these has attributes that the operator does not know, or a map has no such types.
    """
    graph = model.graph
    forms: dict[str, MapForm] = {}
    for node in graph.node:
        take = at_the_border.of(node)
        if take is not None and node.input and node.output:  # else it is refused with all nodes of wrong arity
            take(node, graph, forms)
    if forms and not any(opset.domain in ("", "ai.onnx") for opset in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("", onnx.defs.onnx_opset_version()))
    for value in (*graph.input, *graph.output):
        if _map_type(value.type) is not None:
            raise NotImplemented(
                f"{value.name!r} is made of maps, which are supported as outputs of ZipMap, and as inputs that one "
                "CastMap or DictVectorizer reads"
            )
    kept = [value for value in graph.value_info if _map_type(value.type) is None]
    if len(kept) < len(graph.value_info):
        del graph.value_info[:]
        graph.value_info.extend(kept)
    return forms


at_the_border = Rules[Callable[[onnx.NodeProto, onnx.GraphProto, dict[str, MapForm]], None]]((_ML,))
"""What becomes of operators whose maps are made, or read, outside of the model."""


@at_the_border("ZipMap")
def _zip_map(node: onnx.NodeProto, graph: onnx.GraphProto, forms: dict[str, MapForm]) -> None:
    output = _find(graph.output, node.output[0])
    if output is None or _readers(graph, output.name) > 0:
        raise _elsewhere(node, f"its output {node.output[0]!r} is no output of the model, or is read in it too")
    numbers = _attribute(node, "classlabels_int64s", _INTS, ())
    names = _texts(node, "classlabels_strings")
    key = "string" if names else "int64"
    forms[output.name] = MapForm(f"seq(map({key},tensor(float)))", tuple(names or numbers))
    output.ClearField("type")
    _become(node, "Identity")


@at_the_border("DictVectorizer")
def _dict_vectorizer(node: onnx.NodeProto, graph: onnx.GraphProto, forms: dict[str, MapForm]) -> None:
    names = _texts(node, "string_vocabulary")
    _take_input(node, graph, forms, names or _attribute(node, "int64_vocabulary", _INTS, ()))
    _become(node, "Identity")


@at_the_border("CastMap")
def _cast_map(node: onnx.NodeProto, graph: onnx.GraphProto, forms: dict[str, MapForm]) -> None:
    sparse = _attribute(node, "map_form", _STRING, b"DENSE") == b"SPARSE"
    size = _attribute(node, "max_map", _INT, 1)
    if sparse and not 0 < size <= _MOST_KEYS:
        raise _invalid(node, f"max_map is {size}, not from 1 to {_MOST_KEYS}")
    to = _attribute(node, "cast_to", _STRING, b"TO_FLOAT")
    if to not in _CAST_TO:
        raise _invalid(node, f"cast_to is {to!r}, not one of {', '.join(name.decode() for name in _CAST_TO)}")
    _take_input(node, graph, forms, range(size) if sparse else ())
    _become(node, "Cast", to=_CAST_TO[to])


def _take_input(
    node: onnx.NodeProto, graph: onnx.GraphProto, forms: dict[str, MapForm], keys: Iterable[int | str]
) -> None:
    value = _find(graph.input, node.input[0])
    found = None if value is None else _map_type(value.type)
    if value is None or found is None or _readers(graph, value.name) != 1:
        raise _elsewhere(node, f"its input {node.input[0]!r} is no map that is fed, or other nodes read it too")
    element = found.value_type.tensor_type.elem_type
    if found.key_type not in _KEY_TYPES or element not in TYPE_NAMES:
        raise _invalid(node, f"{value.name!r} is a map from type {found.key_type} to tensors of type {element}")
    forms[value.name] = MapForm(f"map({TYPE_NAMES[found.key_type]},tensor({TYPE_NAMES[element]}))", tuple(keys))
    value.type.CopyFrom(onnx.helper.make_tensor_type_proto(element, [1, len(forms[value.name].keys) or None]))


def _map_type(kind: onnx.TypeProto) -> Any | None:
    """The map in a type, or None."""
    while kind.HasField("sequence_type") or kind.HasField("optional_type"):
        kind = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind.optional_type.elem_type
    return kind.map_type if kind.HasField("map_type") else None


def _find(values: Iterable[onnx.ValueInfoProto], name: str) -> onnx.ValueInfoProto | None:
    return next((value for value in values if value.name == name), None)


def _readers(graph: onnx.GraphProto, name: str) -> int:
    return sum(name in node.input for node in graph.node)


_INT, _STRING = onnx.AttributeProto.INT, onnx.AttributeProto.STRING
_INTS, _STRINGS = onnx.AttributeProto.INTS, onnx.AttributeProto.STRINGS


def _attribute(node: onnx.NodeProto, name: str, kind: int, default: Any) -> Any:
    found = next((item for item in node.attribute if item.name == name), None)
    if found is not None and found.type != kind:
        raise _invalid(node, f"its attribute {name!r} is of another type than the operator's")
    return default if found is None else onnx.helper.get_attribute_value(found)


def _texts(node: onnx.NodeProto, name: str) -> list[str]:
    return [text.decode(errors="surrogateescape") for text in _attribute(node, name, _STRINGS, ())]


def _become(node: onnx.NodeProto, op_type: str, **attributes: Any) -> None:
    node.domain, node.op_type = "", op_type
    del node.attribute[:]
    node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in attributes.items())


def _elsewhere(node: onnx.NodeProto, why: str) -> NotImplemented:
    text = f"works on maps, which is supported at the model's border only: {why}"
    return NotImplemented(f"node {_name(node)} ({node.op_type}) {text}", **_where(node))


def _invalid(node: onnx.NodeProto, why: str) -> InvalidGraph:
    return InvalidGraph(f"node {_name(node)} ({node.op_type}): {why}", **_where(node))


def _where(node: onnx.NodeProto) -> dict[str, Any]:
    return {"node": _name(node), "op_type": node.op_type, "domain": node.domain}


def _name(node: onnx.NodeProto) -> str:
    return node.name or node.output[0]

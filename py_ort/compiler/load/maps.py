"""Replaces maps: scikit-learn's exports end in a ZipMap, and some begin with a CastMap or a DictVectorizer.

No kernel knows maps, and no operator hands one on to another: they are made and read at a model's border, by these
three. Their nodes become Identity or Cast in the file's protobuf, before the IR (which has no maps) reads it, and the
session makes the maps of the tensors, or the tensors of the maps: `py_ort.runtime.values.maps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from py_ort.exceptions import InvalidGraph, NotImplemented
from py_ort.ir.onnx_calls import inline_functions
from py_ort.ir.onnx_process import Died, Refused
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
_TO_THE_END = (1 << 63) - 1
_SLICES_BY_INPUTS = 10  # the opset from which on Slice has its places as inputs


@dataclass(frozen=True)
class MapForm:
    """How an input or output that is made of maps goes through the page.

    Attributes:
        type: Its type in ONNX's words: "map(int64,tensor(float))".
        keys: The key of each column of the tensor, and None at the end for a column per key that comes, in their
            order. Each node that reads a map has columns of its own: a key may be there several times.
    """

    type: str
    keys: tuple[int | str | None, ...]


@dataclass
class _Reading:
    """A node that reads a map.

    Attributes:
        node: The node.
        graph: Where it stands.
        keys: The keys of its columns; None: all keys of the feed.
        to: The dtype that it casts to, as a number, or None.
    """

    node: onnx.NodeProto
    graph: onnx.GraphProto
    keys: Sequence[int | str] | None
    to: int | None = None


class _Maps:
    """The maps among a model's inputs and outputs.

    Attributes:
        graph: The model's graph.
        forms: Inputs and outputs that are maps, by name.
        readings: The nodes that read inputs, at any depth, by the inputs' names.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.forms: dict[str, MapForm] = {}
        self.readings: dict[str, list[_Reading]] = {}


def take_maps(model: onnx.ModelProto) -> dict[str, MapForm]:
    """Replace maps by tensors.

    Args:
        model: Changed in place where it has maps.

    Returns:
        The inputs and outputs that were maps, by name.

    Raises:
        NotImplemented: A map goes elsewhere than from a ZipMap to outputs, or from an input to CastMaps and
            DictVectorizers.
        InvalidGraph: A node of these has attributes that the operator does not know, or a map has no such types.
    """
    _inline_functions(model)
    maps = _Maps(model.graph)
    graphs = list(_graphs(model.graph))
    for graph in graphs:
        for node in graph.node:
            take = at_the_border.of(node)
            if take is not None and node.input and node.output:  # else it is refused with all nodes of wrong arity
                take(node, graph, maps)
    for value in model.graph.input:
        if _map_type(value.type) is not None:
            maps.forms[value.name] = _take_input(value, maps.readings.pop(value.name, []), maps.graph, _opset(model))
    for name, (reading, *_) in maps.readings.items():
        raise _elsewhere(reading.node, f"its input {name!r} is no map that is fed")
    for value in model.graph.output:
        if _map_type(value.type) is not None:
            raise NotImplemented(
                f"output {value.name!r} depends on a map: a map must be the output of a ZipMap in the main graph"
            )
    if maps.forms:
        _opset(model)
    for graph in graphs:
        kept = [value for value in graph.value_info if _map_type(value.type) is None]
        if len(kept) < len(graph.value_info):
            del graph.value_info[:]
            graph.value_info.extend(kept)
    return maps.forms


at_the_border = Rules[Callable[[onnx.NodeProto, onnx.GraphProto, _Maps], None]]((_ML,))
"""Functions that replace a node that makes a map output, or reads a map input, by operator."""


@at_the_border("ZipMap")
def _zip_map(node: onnx.NodeProto, graph: onnx.GraphProto, maps: _Maps) -> None:
    name = node.output[0]
    if _readers(maps.graph, name) or (graph is not maps.graph and _find(graph.output, name) is not None):
        raise _elsewhere(node, f"its output {name!r} is read in it, or is an output of a branch or a loop")
    numbers = _attribute(node, "classlabels_int64s", _INTS, ())
    names = _texts(node, "classlabels_strings")
    key = "string" if names else "int64"
    for output in (value for value in graph.output if value.name == name):
        maps.forms[name] = MapForm(f"seq(map({key},tensor(float)))", tuple(names or numbers))
        output.ClearField("type")
    _become(node, "Identity")


@at_the_border("DictVectorizer")
def _dict_vectorizer(node: onnx.NodeProto, graph: onnx.GraphProto, maps: _Maps) -> None:
    keys = _texts(node, "string_vocabulary") or _attribute(node, "int64_vocabulary", _INTS, ())
    maps.readings.setdefault(node.input[0], []).append(_Reading(node, graph, keys))


@at_the_border("CastMap")
def _cast_map(node: onnx.NodeProto, graph: onnx.GraphProto, maps: _Maps) -> None:
    sparse = _attribute(node, "map_form", _STRING, b"DENSE") == b"SPARSE"
    size = _attribute(node, "max_map", _INT, 1)
    if sparse and not 0 < size <= _MOST_KEYS:
        raise _invalid(node, f"max_map is {size}, not from 1 to {_MOST_KEYS}")
    to = _attribute(node, "cast_to", _STRING, b"TO_FLOAT")
    if to not in _CAST_TO:
        raise _invalid(node, f"cast_to is {to!r}, not one of {', '.join(name.decode() for name in _CAST_TO)}")
    keys = range(size) if sparse else None
    maps.readings.setdefault(node.input[0], []).append(_Reading(node, graph, keys, _CAST_TO[to]))


def _take_input(
    value: onnx.ValueInfoProto, readings: Sequence[_Reading], graph: onnx.GraphProto, opset: int
) -> MapForm:
    """Make an input a tensor, of whose columns each node that reads it has some."""
    found = _map_type(value.type)
    assert found is not None
    element = found.value_type.tensor_type.elem_type
    if found.key_type not in _KEY_TYPES or element not in TYPE_NAMES:
        text = f"{value.name!r} is a map from type {found.key_type} to tensors of type {element}"
        raise _invalid(readings[0].node, text) if readings else InvalidGraph(text)
    if value.type.WhichOneof("value") != "map_type" or _readers(graph, value.name) > len(readings):
        raise NotImplemented(
            f"{value.name!r} is made of maps, which are supported as inputs that CastMaps and DictVectorizers "
            "read, and as outputs of ZipMaps"
        )
    keys: list[int | str | None] = [key for reading in readings for key in reading.keys or ()]
    fixed, start = len(keys), 0
    for reading in readings:
        columns = (fixed, _TO_THE_END) if reading.keys is None else (start, start + len(reading.keys))
        _become_columns(reading, columns if len(readings) > 1 else None, opset)
        start += len(reading.keys or ())
    if any(reading.keys is None for reading in readings):
        keys.append(None)
    value.type.CopyFrom(onnx.helper.make_tensor_type_proto(element, [1, None if None in keys else fixed]))
    return MapForm(f"map({TYPE_NAMES[found.key_type]},tensor({TYPE_NAMES[element]}))", tuple(keys))


def _become_columns(reading: _Reading, columns: tuple[int, int] | None, opset: int) -> None:
    """Make a node one that takes these columns of a tensor; None: all."""
    node = reading.node
    if columns is not None:
        taken = f"{node.output[0]}/columns"
        _slice(reading.graph, node.input[0], taken, columns, opset)
        node.input[0] = taken
    if reading.to is None:
        _become(node, "Identity")
    else:
        _become(node, "Cast", to=reading.to)


def _slice(graph: onnx.GraphProto, name: str, taken: str, columns: tuple[int, int], opset: int) -> None:
    """Add a Slice of columns; nodes are sorted later."""
    start, end = columns
    if opset < _SLICES_BY_INPUTS:
        graph.node.append(onnx.helper.make_node("Slice", [name], [taken], starts=[start], ends=[end], axes=[1]))
        return
    inputs = [name]
    for key, place in (("starts", start), ("ends", end), ("axes", 1)):
        inputs.append(f"{taken}/{key}")
        tensor = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [place])
        graph.node.append(onnx.helper.make_node("Constant", [], inputs[-1:], value=tensor))
    graph.node.append(onnx.helper.make_node("Slice", inputs, [taken]))


def _inline_functions(model: onnx.ModelProto) -> None:
    """Put the bodies of functions that work on maps where they are called."""
    for _ in range(len(model.functions)):
        names = [(each.domain, each.name) for each in model.functions if any(map(at_the_border.of, each.node))]
        if not names:
            return
        try:
            model.CopyFrom(inline_functions(model, names))
        except (Refused, Died) as e:  # of functions that call themselves, or become too large
            raise InvalidGraph(f"the function {names[0][1]} works on maps, and cannot be put in place: {e}") from e


def _opset(model: onnx.ModelProto) -> int:
    """The opset of ONNX's own operators; the newest from now on if the model has none."""
    found = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), None)
    if found is None:
        found = onnx.defs.onnx_opset_version()
        model.opset_import.append(onnx.helper.make_opsetid("", found))
    return found


def _map_type(kind: onnx.TypeProto) -> Any | None:
    """The map in a type, or None."""
    while kind.HasField("sequence_type") or kind.HasField("optional_type"):
        kind = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind.optional_type.elem_type
    return kind.map_type if kind.HasField("map_type") else None


def _find(values: Iterable[onnx.ValueInfoProto], name: str) -> onnx.ValueInfoProto | None:
    return next((value for value in values if value.name == name), None)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph, and the subgraphs of its nodes at every depth."""
    yield graph
    for node in graph.node:
        for item in node.attribute:
            for inner in (*([item.g] if item.type == onnx.AttributeProto.GRAPH else []), *item.graphs):
                yield from _graphs(inner)


def _readers(graph: onnx.GraphProto, name: str) -> int:
    return sum(name in node.input for each in _graphs(graph) for node in each.node)


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

"""Looking at graphs and changing them, without a thought for types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import onnx_ir as ir

from py_ort.ir.operators import op_types

T = TypeVar("T")

ORIGIN = "py_ort.origin"


def origins(node: ir.Node) -> tuple[str, ...]:
    """Return the names of the model's nodes that `node` came from."""
    known = node.meta.get(ORIGIN)
    return known if known is not None else (node.name or node.op_type,)


def set_origins(node: ir.Node, names: Sequence[str]) -> None:
    """Say where `node` came from."""
    node.meta[ORIGIN] = tuple(dict.fromkeys(names))


def required(found: T | None) -> T:
    """Return a value that cannot be missing, such as a required input. None is a bug of py_ort."""
    assert found is not None
    return found


def array(value: ir.Value | None) -> np.ndarray | None:
    """Return the constant's contents, or None when the value is not a constant."""
    if value is None or value.const_value is None:
        return None
    tensor = value.const_value
    if isinstance(
        tensor, ir.StringTensor
    ):  # the tensor's own array has numpy's byte strings, which lose NULs at their ends
        return np.array([*tensor.string_data(), None], object)[:-1].reshape(tensor.shape.numpy())
    return tensor.numpy()


def tensor_of(contents: np.ndarray) -> ir.TensorProtocol:
    """Make a tensor of an array, without a copy."""
    if contents.dtype.kind in "OUST":
        texts = [item if isinstance(item, bytes) else str(item).encode() for item in contents.reshape(-1)]
        return ir.StringTensor(texts, shape=ir.Shape(contents.shape))
    return ir.Tensor(
        contents, ir.DataType.from_numpy(contents.dtype)
    )  # `ir.tensor` spends most of its time on its argument's type


def element_bytes(dtype: ir.DataType | None) -> float:
    """Return the bytes of an element; for strings, an estimate for a short one."""
    if dtype is None:
        return 4
    return 64 if dtype == ir.DataType.STRING else dtype.itemsize


def scalar(value: ir.Value | None) -> Any | None:
    """Return the number of a constant with one element, or None."""
    if value is None or value.const_value is None or value.const_value.size != 1:
        return None
    return value.const_value.numpy().reshape(-1)[0].item()


def ints(value: ir.Value | None) -> list[int] | None:
    """Return a constant's elements as integers (a list, whatever its rank), or None when it is not a constant."""
    contents = array(value)
    return None if contents is None else [int(item) for item in contents.reshape(-1)]


def rank(value: ir.Value | None) -> int | None:
    """Return the rank, when it is known."""
    return None if value is None or value.shape is None else value.shape.rank()


def permutation(transpose: ir.Node) -> list[int] | None:
    """Return the permutation of a Transpose; None if it is not known to be one of all axes.

    Models may have others where they never run; where they do, the kernel says what is wrong.
    """
    count, perm = rank(transpose.inputs[0]), attribute(transpose, "perm", None)
    if count is None:
        return None
    found = list(range(count))[::-1] if perm is None else [int(axis) for axis in perm]
    return found if sorted(found) == list(range(count)) else None


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """Return an input, or None where it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def dims(value: ir.Value | None) -> list[int | ir.SymbolicDim] | None:
    """Return the dimensions, when the rank is known."""
    return None if value is None or value.shape is None else list(value.shape)


def static_sizes(sizes: Sequence[int | ir.SymbolicDim] | None) -> list[int] | None:
    """Return sizes that are all known numbers; None if any is not."""
    found = [size for size in sizes or () if isinstance(size, int)]
    return found if sizes is not None and len(found) == len(sizes) else None


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Return an attribute's value, or `default`."""
    found = node.attributes.get(name)
    return default if found is None else found.value


def set_attributes(node: ir.Node, **attributes: Any) -> None:
    """Set attributes; None removes one."""
    for name, value in attributes.items():
        if value is None:
            node.attributes.pop(name, None)
        else:
            node.attributes[name] = make_attribute(name, value)


def make_attribute(name: str, value: Any) -> ir.Attr:
    """Make an attribute of a value of Python or numpy; one that is an attribute already stays."""
    if isinstance(value, ir.Attr):
        return value
    if isinstance(value, np.ndarray):
        return ir.AttrTensor(name, tensor_of(value))
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    if not isinstance(value, (list, tuple)):
        make = _MAKE.get(type(value))
    else:
        kinds = {type(item) for item in value} or {int}
        make = _MAKE_LIST.get(kinds.pop()) if len(kinds) == 1 else None
    # Common kinds first: `convert_attribute` tries one protocol after the other.
    return ir.convenience.convert_attribute(name, value) if make is None else make(name, value)


_MAKE: dict[type, Callable[[str, Any], ir.Attr]] = {int: ir.AttrInt64, float: ir.AttrFloat32, str: ir.AttrString}
_MAKE_LIST: dict[type, Callable[[str, Any], ir.Attr]] = {
    int: ir.AttrInt64s,
    float: ir.AttrFloat32s,
    str: ir.AttrStrings,
}


def attributes_of(node: ir.Node) -> dict[str, Any]:
    """Return a node's attributes by name, as keywords for `Builder.op`."""
    return dict(node.attributes)


def all_nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield the nodes of a graph and of its subgraphs, each node before the nodes of its subgraphs."""
    bodies = op_types("bodies")
    for node in graph:
        yield node
        if node.op_type in bodies or node.domain != "":  # most nodes of long graphs are not asked for graphs
            for subgraph in subgraphs(node):
                yield from all_nodes(subgraph)


def subgraphs(node: ir.Node) -> list[ir.Graph]:
    """Return the graphs among a node's attributes."""
    if node.domain == "" and node.op_type not in op_types("bodies"):
        return []
    found: list[ir.Graph] = []
    for item in node.attributes.data.values():
        if item.is_ref():
            continue  # a graph that a caller gives
        if item.type == ir.AttributeType.GRAPH:
            found.append(item.value)
        elif item.type == ir.AttributeType.GRAPHS:
            found.extend(item.value)
    return found


def all_graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """Yield the graph, then its subgraphs at every depth."""
    yield graph
    bodies = op_types("bodies")
    for node in graph:
        if node.op_type in bodies or node.domain != "":
            for subgraph in subgraphs(node):
                yield from all_graphs(subgraph)


def replace_value(old: ir.Value, new: ir.Value) -> None:
    """Let all that reads `old` (graph outputs too) read `new`.

    A graph output keeps its name: `new` takes it over when it is free to, else an Identity is put between.
    """
    if old is new:
        return
    graph = old.graph
    if old.is_graph_output() and graph is not None:
        needs_copy = new.is_graph_output() or new.is_graph_input() or new.is_initializer() or new.graph is not graph
        if needs_copy:
            copy = ir.Node("", "Identity", [new], num_outputs=1)
            copy.outputs[0].type, copy.outputs[0].shape = old.type, old.shape
            graph.append(copy)
            for user, index in list(old.uses()):
                user.replace_input_with(index, new)
            old.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
            _take_name(old, copy.outputs[0])
            return
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        _take_name(old, new)
    else:
        old.replace_all_uses_with(new)
    if new.type is None:
        new.type = old.type
    if new.shape is None:
        new.shape = old.shape


def _take_name(old: ir.Value, new: ir.Value) -> None:
    name = old.name
    old.name = f"{name}__replaced"
    new.name = name


def remove(node: ir.Node) -> None:
    """Remove a node whose outputs nothing reads any more."""
    assert node.graph is not None
    node.graph.remove(node, safe=True)


def detach(graph: ir.Graph) -> None:
    """Let the nodes of a graph that is of no use any more read nothing."""
    for node in all_nodes(graph):
        for index in range(len(node.inputs)):
            node.replace_input_with(index, None)


def remove_with_subgraphs(node: ir.Node) -> None:
    """Remove a node and its subgraphs, which must not belong to another node; their reads end, too."""
    for subgraph in subgraphs(node):
        detach(subgraph)
    remove(node)


def add_constant(graph: ir.Graph, tensor: ir.TensorProtocol, base: str | None) -> ir.Value:
    """Register a constant in `graph` under a new name made of `base`."""
    stem = (base or "constant").split("__const")[0]
    name, number = f"{stem}__const", 0
    while name in graph.initializers:
        number += 1
        name = f"{stem}__const{number}"
        if number > 64:  # one stem for very many constants: do not search linearly
            name = f"{stem}__const{number}_{len(graph.initializers)}"
    value = ir.Value(
        name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor
    )
    graph.register_initializer(value)
    return value

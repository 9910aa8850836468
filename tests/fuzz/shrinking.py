"""Makes a model that shows a fault smaller, step by step, as long as it still shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from child import Child, ChildLost
from onnx import numpy_helper

Feeds = Mapping[str, Any]
Shows = Callable[[bytes, Feeds], bool]
_SECONDS = 60.0


def shrink(model: bytes, feeds: Feeds, shows: Shows, native: Child) -> tuple[bytes, Feeds]:
    """Return a smaller model and its feeds.

    Args:
        model: A model that can be parsed.
        feeds: Its feeds.
        shows: Returns True if a model still shows the fault.
        native: Computes the values of a node's inputs, if the nodes that make them are cut off.
    """
    ends = time.monotonic() + _SECONDS
    progress = True
    while progress:
        progress = False
        for smaller, fewer in _smaller(onnx.ModelProto.FromString(model), dict(feeds), native):
            if time.monotonic() > ends:
                return model, feeds
            data = smaller.SerializeToString()
            if shows(data, fewer):
                model, feeds, progress = data, fewer, True
                break
    return model, feeds


def _smaller(model: onnx.ModelProto, feeds: dict[str, Any], native: Child) -> Iterator[tuple[onnx.ModelProto, Feeds]]:
    """Yield smaller models, those with the largest reduction first."""
    for output in model.graph.output if len(model.graph.output) > 1 else ():
        yield _cleaned(_with(model, lambda graph, o=output: _set(graph.output, [o])), feeds)
    yield from _cut_off(model, feeds, native)
    for at, node in enumerate(model.graph.node):
        made = set(node.output)
        left = [o for o in model.graph.output if o.name not in made]
        read = {name for other in model.graph.node for name in other.input}
        if left and not made & read:
            yield _cleaned(_with(model, lambda graph, a=at, o=left: (graph.node.pop(a), _set(graph.output, o))), feeds)
        ends_graph = any(output.name in made for output in model.graph.output)
        for name in node.input:
            # A node that gives an output becomes an Identity; an Identity there would become one for ever.
            if name and len(node.output) == 1 and not (ends_graph and node.op_type == "Identity"):
                yield _cleaned(_with(model, lambda graph, a=at, n=name: _bypass(graph, a, n)), feeds)
        for item in node.attribute:
            dropped = [other for other in node.attribute if other.name != item.name]
            yield _with(model, lambda graph, a=at, d=dropped: _set(graph.node[a].attribute, d)), feeds
    yield from _narrower(model, feeds)
    yield from _plainer(model, feeds)


def _with(model: onnx.ModelProto, change: Callable[[Any], Any]) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    change(made.graph)
    return made


def _set(items: Any, contents: list[Any]) -> None:
    copies = []
    for each in contents:
        copies.append(type(each)())
        copies[-1].CopyFrom(each)
    del items[:]
    items.extend(copies)


def _bypass(graph: onnx.GraphProto, at: int, name: str) -> None:
    """Put one of a node's inputs in place of its output."""
    made = graph.node[at].output[0]
    if any(output.name == made for output in graph.output):
        graph.node[at].CopyFrom(onnx.helper.make_node("Identity", [name], [made], name=graph.node[at].name))
        return
    graph.node.pop(at)
    for node in graph.node:
        for i, read in enumerate(node.input):
            if read == made:
                node.input[i] = name


def _cleaned(model: onnx.ModelProto, feeds: dict[str, Any]) -> tuple[onnx.ModelProto, Feeds]:
    """Without unread parts."""
    graph = model.graph
    wanted, kept = {o.name for o in graph.output}, []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            kept.append(node)
            wanted |= set(node.input) | {name for item in node.attribute for name in _read_within(item.g)}
    _set(graph.node, kept[::-1])
    _set(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in wanted])
    _set(graph.input, [value for value in graph.input if value.name in wanted])
    return model, {name: value for name, value in feeds.items() if name in wanted}


def _read_within(graph: onnx.GraphProto) -> set[str]:
    found = {name for node in graph.node for name in node.input}
    return found.union(
        *(_read_within(item.g) for node in graph.node for item in node.attribute), {o.name for o in graph.output}
    )


def _cut_off(model: onnx.ModelProto, feeds: dict[str, Any], native: Child) -> Iterator[tuple[onnx.ModelProto, Feeds]]:
    """Values inside become inputs, so that the nodes that make them are not needed."""
    read = {name for node in model.graph.node for name in node.input}
    made = [name for node in model.graph.node for name in node.output if name in read]
    ends = {output.name for output in model.graph.output}
    asked = _with(model, lambda graph: _set(graph.output, [onnx.ValueInfoProto(name=name) for name in made]))
    try:
        found = native.ask(asked.SerializeToString(), feeds)
    except ChildLost:
        return
    if found.status != "ok":
        return
    for name, contents in reversed(list(zip(made, found.outputs, strict=True))):
        if name in ends or not isinstance(contents, np.ndarray):
            continue
        kind = onnx.helper.np_dtype_to_tensor_dtype(contents.dtype)
        fed = onnx.helper.make_tensor_value_info(name, kind, contents.shape)
        yield _cleaned(_with(model, lambda graph, n=name, f=fed: _feed(graph, n, f)), {**feeds, name: contents})


def _feed(graph: onnx.GraphProto, name: str, fed: onnx.ValueInfoProto) -> None:
    for node in graph.node:
        for i, output in enumerate(node.output):
            if output == name:
                node.output[i] = f"{name}_"
    graph.input.append(fed)


def _narrower(model: onnx.ModelProto, feeds: dict[str, Any]) -> Iterator[tuple[onnx.ModelProto, Feeds]]:
    """Each size, halved or reduced by one, wherever it occurs."""
    arrays = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    sizes = {size for array in (*arrays.values(), *constants.values()) for size in array.shape if size > 1}
    for size in sorted(sizes, reverse=True):
        for less in sorted({size // 2, size - 1, 1}):
            if 0 < less < size:
                cut = {name: _cut(array, size, less) for name, array in arrays.items()}
                held = [numpy_helper.from_array(_cut(array, size, less), name) for name, array in constants.items()]
                smaller = _with(
                    model, lambda graph, h=held, s=size, n=less: (_set(graph.initializer, h), _resize(graph, s, n))
                )
                yield smaller, {**feeds, **cut}


def _cut(array: np.ndarray, size: int, less: int) -> np.ndarray:
    return np.ascontiguousarray(array[tuple(slice(less if d == size else d) for d in array.shape)]).reshape(
        [less if d == size else d for d in array.shape]
    )


def _resize(graph: onnx.GraphProto, size: int, less: int) -> None:
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value == size:
                dim.dim_value = less


def _plainer(model: onnx.ModelProto, feeds: dict[str, Any]) -> Iterator[tuple[onnx.ModelProto, Feeds]]:
    """Open sizes become numbers, and numbers get fewer digits."""
    if any(dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim):
        yield _with(model, lambda graph: _close(graph, feeds)), feeds
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and (np.round(value, 1) != value).any():
            yield model, {**feeds, name: np.round(value, 1)}


def _close(graph: onnx.GraphProto, feeds: Feeds) -> None:
    for value in graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, np.shape(feeds[value.name]), strict=True):
            dim.dim_value = size

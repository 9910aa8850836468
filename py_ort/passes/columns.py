"""Concat, Split and Slice along the last axis → columns of wider tensors, read and written in place: no copies.

A node may read some columns of a tensor (`x_columns`, `residual_columns`: first, count), and write some columns of one
(`y_columns`: first, width). The first that writes into a tensor makes it, the others have it as the input that `into`
names, and give it out again: each sees what those before it have written.

Runs last, on nodes that are placed: it changes them where they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from py_ort.ops import NHWC
from py_ort.ops.builder import all_graphs, array, attribute, dims, ints, rank, remove, replace_value, set_attributes
from py_ort.passes.pass_base import Pass

_LANES = 4  # columns that kernels read and write at a time
_POOLS = ("MaxPool", "AveragePool", "LpPool")
#: For each operator: the inputs that may be columns, by attribute, and the input that is the tensor to write into.
_KINDS: dict[tuple[str, str], tuple[dict[int, str], int]] = {
    (NHWC, "Conv"): ({0: "x_columns", 3: "residual_columns"}, 4),
    (NHWC, "ConvTranspose"): ({0: "x_columns"}, 4),
    **{(NHWC, name): ({0: "x_columns"}, 1) for name in _POOLS},
    ("", "Resize"): ({0: "x_columns"}, 4),
}
#: How many of its inputs, from the first on, must lie in another tensor than the output (1).
_SEPARATE = dict.fromkeys(_POOLS, 0)
_NEAR = 24  # nodes between the first and the last that write into a tensor of unknown size
_MANY = 10_000  # nodes, from which on nobody adds up what is alive at each of them

Takes = Callable[[ir.Node], bool]


class Columns(Pass):
    """Slices that only such nodes read, then Concats that have most of their inputs from such nodes."""

    def __init__(self, takes: Takes) -> None:
        """`takes`: whether the provider of a node has it with columns."""
        self._takes = takes

    def call(self, model: ir.Model) -> int:
        """Each graph by itself: what is computed again and again is made anew each time."""
        return sum(self._slices(graph) + self._concats(graph) for graph in all_graphs(model.graph))

    def _slices(self, graph: ir.Graph) -> int:
        count = 0
        for node in reversed(list(graph)):  # a slice of a slice first
            parts = _parts(node)
            source = node.inputs[0] if parts else None
            for part, first in parts:
                size, width = _width(part), _width(source)
                if not _aligned(first, size, width) or part.is_graph_output() or not part.uses():
                    continue
                if not all(self._reads_columns(user, index, graph) for user, index in part.uses()):
                    continue
                assert source is not None and size is not None
                for user, index in list(part.uses()):
                    _read(user, index, first, size)
                    user.replace_input_with(index, source)
                count += 1
            if parts and not any(o.uses() or o.is_graph_output() for o in node.outputs):
                remove(node)
        return count

    def _concats(self, graph: ir.Graph) -> int:
        memory: _Memory | None = None
        count = 0
        for node in list(graph):
            if node.op_type != "Concat" or node.domain != "" or "y_columns" in node.attributes or not self._takes(node):
                continue
            memory = memory or _Memory(graph)
            join = self._join(node, graph, memory.position)
            # What was made first waits longest for the others: rather copy that.
            while join is not None and not memory.allows(join):
                join = _join(node, join.writers[1:])
            if join is not None:
                _fuse(join)
                count += 1
        return count

    def _join(self, node: ir.Node, graph: ir.Graph, position: Mapping[ir.Node, int]) -> _Join | None:
        """How a Concat goes when all write into it that can."""
        count, sources = rank(node.outputs[0]), [v for v in node.inputs if v is not None]
        if count is None or attribute(node, "axis") % count != count - 1 or len(set(sources)) < len(node.inputs):
            return None
        widths = _widths(node)
        if not all(width > 0 and width % _LANES == 0 for width in widths):
            return None
        writers: list[ir.Node] = []
        for i in sorted(range(len(sources)), key=lambda i: _place(sources[i], position)):
            source, made = sources[i], sources[i].producer()
            if made is None or widths[i] != _width(source) or source.is_graph_output():
                continue
            beside = {writer.outputs[0] for writer in writers}
            if (
                self._writes_columns(made, graph)
                and all(user is node or self._reads_columns(user, index, graph) for user, index in source.uses())
                and not any(v in beside for v in made.inputs[: _SEPARATE.get(made.op_type, 1)])
            ):
                writers.append(made)
        return _join(node, writers)

    def _only_columns(self, value: ir.Value, concat: ir.Node, graph: ir.Graph) -> bool:
        return all(user is concat or self._reads_columns(user, index, graph) for user, index in value.uses())

    def _reads_columns(self, node: ir.Node, index: int, graph: ir.Graph) -> bool:
        if node.graph is not graph or not self._takes(node):
            return False
        if node.domain == "" and node.op_type == "Concat":
            count = rank(node.inputs[index])
            return (
                count is not None and attribute(node, "axis") % count == count - 1 and index != attribute(node, "into")
            )
        return index in _KINDS.get((node.domain, node.op_type), ({}, 0))[0] and _is_suited(node)

    def _writes_columns(self, node: ir.Node, graph: ir.Graph) -> bool:
        return (
            node.graph is graph
            and (node.domain, node.op_type) in _KINDS
            and "y_columns" not in node.attributes
            and self._takes(node)
            and _is_suited(node)
        )


@dataclass(frozen=True)
class _Join:
    """A Concat: the nodes that will write their part of it, in their order, and which of its inputs are copied."""

    concat: ir.Node
    writers: list[ir.Node]
    copied: list[int]


def _join(concat: ir.Node, writers: list[ir.Node]) -> _Join | None:
    """How a Concat goes with these writers; None where it had better stay."""
    written = {writer.outputs[0] for writer in writers}
    copied = [i for i, source in enumerate(concat.inputs) if source not in written]
    # What lies side by side is copied at once; more launches than the Concat itself are no gain.
    if not writers or (copied and copied != list(range(copied[0], copied[-1] + 1))):
        return None
    return _Join(concat, writers, copied)


def _widths(concat: ir.Node) -> list[int]:
    """How many columns each input gives; 0 where that is unknown."""
    given = attribute(concat, "x_columns")
    return [width or 0 for width in (given[1::2] if given else map(_width, concat.inputs))]


def _place(value: ir.Value, position: Mapping[ir.Node, int]) -> int:
    made = value.producer()
    return -1 if made is None else position.get(made, -1)


def _is_suited(node: ir.Node) -> bool:
    """Whether the kernel works on columns for this node's attributes and sizes."""
    if rank(node.inputs[0]) != 4:
        return False
    if node.op_type == "ConvTranspose":
        return all(d == 1 for d in attribute(node, "dilations", ())) and len(node.inputs) <= 3
    if node.op_type != "Resize":
        return True
    if attribute(node, "antialias", 0) or attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        return False
    axes = [axis % 4 for axis in attribute(node, "axes") or range(4)]
    if attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    if 3 not in axes:
        return True
    scales, sizes = (array(v) if v is not None else None for v in (*node.inputs[2:4], None, None)[:2])
    place = axes.index(3)
    if scales is not None and scales.size == len(axes):
        return bool(scales.reshape(-1)[place] == 1)
    return sizes is not None and sizes.size == len(axes) and int(sizes.reshape(-1)[place]) == _width(node.inputs[0])


def _width(value: ir.Value | None) -> int | None:
    known = dims(value)
    return known[-1] if known and isinstance(known[-1], int) else None


def _aligned(*columns: int | None) -> bool:
    return all(number is not None and number % _LANES == 0 for number in columns)


def _parts(node: ir.Node) -> list[tuple[ir.Value, int]]:
    """The outputs of a Split or Slice along the last axis, with their first columns."""
    if node.domain != "" or node.op_type not in ("Split", "Slice"):
        return []
    count, width = rank(node.inputs[0]), _width(node.inputs[0])
    if count is None or width is None:
        return []
    if node.op_type == "Split":
        sizes = [size for output in node.outputs if (size := _width(output)) is not None]
        if attribute(node, "axis", 0) % count != count - 1 or len(sizes) < len(node.outputs):
            return []
        return [(output, sum(sizes[:i])) for i, output in enumerate(node.outputs)]
    starts, axes, steps = (ints(v) for v in (*node.inputs[1:2], *(*node.inputs[3:5], None, None)[:2]))
    if starts is None or len(starts) != 1 or axes is None or axes[0] % count != count - 1 or (steps or [1]) != [1]:
        return []
    first = starts[0] + width if starts[0] < 0 else starts[0]
    return [(node.outputs[0], min(max(first, 0), width))]


def _read(node: ir.Node, index: int, first: int, count: int) -> None:
    """Let the node read its input as columns, which may be columns of those that it reads already."""
    if node.op_type == "Concat":
        sources = node.inputs[: attribute(node, "into")]
        given = list(attribute(node, "x_columns") or [n for v in sources for n in (0, _width(v))])
        given[2 * index : 2 * index + 2] = [given[2 * index] + first, given[2 * index + 1]]
        set_attributes(node, x_columns=given)
        return
    name = _KINDS[node.domain, node.op_type][0][index]
    inner, size = attribute(node, name) or (0, count)
    set_attributes(node, **{name: [first + inner, size]})


def _fuse(join: _Join) -> None:
    concat = join.concat
    widths, sources, given = _widths(concat), list(concat.inputs), attribute(concat, "x_columns")
    firsts, width = [sum(widths[:i]) for i in range(len(widths))], sum(widths)
    wide = None
    for node in join.writers:
        made = node.outputs[0]
        place = sources.index(made)
        for user, index in list(made.uses()):
            if user is not concat:
                _read(user, index, firsts[place], widths[place])
        if wide is not None:
            into = _KINDS[node.domain, node.op_type][1]
            node.resize_inputs(into + 1)
            node.replace_input_with(into, wide)
            set_attributes(node, into=into)
        set_attributes(node, y_columns=[firsts[place], width])
        made.shape = ir.Shape([*(dims(made) or [])[:-1], width])
        wide = made
    assert wide is not None
    if not join.copied:
        replace_value(concat.outputs[0], wide)
        remove(concat)
        return
    columns = [n for i in join.copied for n in given[2 * i : 2 * i + 2]] if given else None
    concat.resize_inputs(len(join.copied) + 1)
    for i, source in enumerate([*(sources[k] for k in join.copied), wide]):
        concat.replace_input_with(i, source)
    set_attributes(concat, into=len(join.copied), x_columns=columns, y_columns=[firsts[join.copied[0]], width])


class _Memory:
    """What is alive at each node: a tensor made early for what comes into it late may cost more than a copy."""

    def __init__(self, graph: ir.Graph) -> None:
        self.position = {node: i for i, node in enumerate(graph)}
        self._alive: np.ndarray | None = None
        values = [value for node in graph for value in node.outputs if value.uses() or value.is_graph_output()]
        sizes = {value: _bytes(value) for value in (*graph.inputs, *values)}
        if len(self.position) > _MANY or any(size is None for size in sizes.values()):
            return
        changes = np.zeros(len(self.position) + 1, np.int64)
        for value, size in sizes.items():
            self._add(changes, self._span(value), size or 0)
        self._alive = np.cumsum(changes)[:-1]
        self._most = int(self._alive.max(initial=0))

    def allows(self, join: _Join) -> bool:
        """Whether no more is needed at any time; takes note of it."""
        made = [node.outputs[0] for node in join.writers]
        spans = [self._span(value) for value in (*made, join.concat.outputs[0])]
        begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
        if self._alive is None:
            return spans[-1][0] - begin <= _NEAR
        changes = np.zeros(len(self.position) + 1, np.int64)
        for value, span in zip((*made, join.concat.outputs[0]), spans, strict=True):
            self._add(changes, span, -(_bytes(value) or 0))
        self._add(changes, (begin, end), _bytes(join.concat.outputs[0]) or 0)
        alive = self._alive + np.cumsum(changes)[:-1]
        if int(alive.max(initial=0)) > self._most:
            return False
        self._alive = alive
        return True

    def _span(self, value: ir.Value) -> tuple[int, int]:
        """The first and the last node at which it is alive."""
        made = value.producer()
        last = len(self.position) - 1
        uses = [self.position.get(user, last) for user, _ in value.uses()]
        begin = 0 if made is None else self.position[made]
        return begin, last if value.is_graph_output() else max([begin, *uses])

    @staticmethod
    def _add(changes: np.ndarray, span: tuple[int, int], size: int) -> None:
        changes[span[0]] += size
        changes[span[1] + 1] -= size


def _bytes(value: ir.Value) -> int | None:
    known = [d for d in dims(value) or [] if isinstance(d, int)]
    if value.dtype is None or len(known) != rank(value):
        return None
    return math.prod(known) * max(1, math.ceil(value.dtype.itemsize))

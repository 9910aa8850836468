"""Concat, Split and Slice along the last axis → columns of wider tensors, read and written in place: no copies.

A node may read some columns of a tensor (`x_columns`, `residual_columns`: first, count), and write some columns of one
(`y_columns`: first, width). The first that writes into a tensor makes it, the others have it as the input that `into`
names, and give it out again, as an alias: each sees what those before it have written. A Concat with `into` copies its
other inputs there: one of which some inputs must be copied still goes if those lie side by side and are at most half of
it. None goes that would need more memory at any time (`lifetimes.py`).

Runs last, on nodes that are placed: it changes them where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from py_ort.compiler.passes.contracts import called
from py_ort.compiler.passes.placed.column_nodes import (
    LANES,
    is_suited,
    reads_columns,
    take_columns,
    width_of,
)
from py_ort.compiler.passes.placed.kernel_pass import KernelPass
from py_ort.compiler.passes.placed.lifetimes import Lifetimes
from py_ort.ir.graph import all_graphs, attribute, dims, ints, rank, remove, replace_value, set_attributes
from py_ort.ir.operators import operator
from py_ort.schema.dialect import INTO, X_COLUMNS, Y_COLUMNS

_WRITERS = 64  # of a tensor that becomes part of a wider one: all their nodes change again


class Columns(KernelPass):
    """Slices that only such nodes read, then Concats that have most of their inputs from such nodes."""

    after = ("elementwise_chains",)  # placement is final

    def call(self, model: ir.Model) -> int:
        """Rewrite each graph separately: a loop's body makes its tensors in each iteration."""
        return sum(self._slices(graph) + self._concats(graph) for graph in all_graphs(model.graph))

    def ensures(self, model: ir.Model) -> None:
        """Check that columns are within their tensors."""
        check_columns(model)

    def _slices(self, graph: ir.Graph) -> int:
        count = 0
        for node in reversed(list(graph)):  # a slice of a slice first
            parts = _parts(node)
            source = node.inputs[0] if parts else None
            for part, first in parts:
                size, width = width_of(part), width_of(source)
                if not _aligned(first, size, width) or part.is_graph_output() or not part.uses():
                    continue
                if not all(reads_columns(user, index, graph, self._takes) for user, index in part.uses()):
                    continue
                assert source is not None and size is not None
                for user, index in list(part.uses()):
                    take_columns(user, index, first, size)
                    user.replace_input_with(index, source)
                count += 1
            if parts and not any(o.uses() or o.is_graph_output() for o in node.outputs):
                remove(node)
        return count

    def _concats(self, graph: ir.Graph) -> int:
        lifetimes: Lifetimes | None = None
        wide: dict[ir.Value, list[ir.Node]] = {}
        count = 0
        for node in list(graph):
            if node.op_type != "Concat" or node.domain != "" or Y_COLUMNS in node.attributes or not self._takes(node):
                continue
            lifetimes = lifetimes or Lifetimes(graph)
            parts = self._parts_of(node, graph, wide, lifetimes.position)
            # The first part waits longest for the others: copy that one.
            while parts and not _allowed(node, parts, lifetimes):
                parts = parts[1:]
            if parts:
                _fuse(node, parts, wide, lifetimes)
                count += 1
        return count

    def _parts_of(
        self,
        node: ir.Node,
        graph: ir.Graph,
        wide: Mapping[ir.Value, list[ir.Node]],
        position: Mapping[ir.Node, int],
    ) -> list[_Part]:
        """Return the inputs of a Concat that can be made in place, in the order in which they are computed."""
        count, sources = rank(node.outputs[0]), [v for v in node.inputs if v is not None]
        if count is None or attribute(node, "axis") % count != count - 1 or len(set(sources)) < len(node.inputs):
            return []
        widths = _widths(node)
        if not all(width > 0 and width % LANES == 0 for width in widths):
            return []
        found: list[_Part] = []
        for i, source in enumerate(sources):
            made = source.producer()
            writers = wide.get(source) or ([made] if made is not None and self._writes_columns(made, graph) else [])
            if not 0 < len(writers) <= _WRITERS or widths[i] != width_of(source) or source.is_graph_output():
                continue
            if all(user is node or reads_columns(user, index, graph, self._takes) for user, index in source.uses()):
                found.append(_Part(i, source, writers))
        found.sort(key=lambda part: position[part.writers[-1]])
        apart: list[_Part] = []
        for part in found:
            if not any(_meet(part, other) or _meet(other, part) for other in apart):
                apart.append(part)
        return apart

    def _writes_columns(self, node: ir.Node, graph: ir.Graph) -> bool:
        return (
            node.graph is graph
            and operator(node.domain, node.op_type).into is not None
            and Y_COLUMNS not in node.attributes
            and self._takes(node)
            and is_suited(node)
        )


def check_columns(model: ir.Model) -> None:
    """Check that writers stay within tensors of the stated width, which exist before and which they do not read."""
    for graph in all_graphs(model.graph):
        made: dict[ir.Value, ir.Value] = {}
        for node in graph:
            read = attribute(node, X_COLUMNS, ()) if node.op_type != "Concat" else ()
            for value, first, count in zip(node.inputs, read[::2], read[1::2], strict=False):
                assert first + count <= (width_of(value) or 0), f"{called(node)} reads {read}"
            columns, into = attribute(node, Y_COLUMNS), attribute(node, INTO)
            if columns is None:
                continue
            first, width = columns
            known = width_of(node.outputs[0])
            assert 0 <= first < width == known, f"{called(node)} writes {columns} of {known} columns"
            source = None if into is None else node.inputs[into]
            assert source is None or source in made, f"{called(node)} writes into {source and source.name}"
            wide = node.outputs[0] if source is None else made[source]
            for value in node.inputs[: _apart(node)]:
                assert value is None or made.get(value) is not wide, f"{called(node)} reads what it writes into"
            made[node.outputs[0]] = wide


@dataclass(frozen=True)
class _Part:
    """Input `index` of a Concat, and the nodes that write it, in their order."""

    index: int
    value: ir.Value
    writers: list[ir.Node]


def _meet(part: _Part, other: _Part) -> bool:
    """Return True if a node of one part reads the other part in a way that one tensor for both would not allow."""
    made = {node.outputs[0] for node in other.writers}
    return any(value in made for node in part.writers for value in node.inputs[: _apart(node)])


def _apart(node: ir.Node) -> int:
    """Return the number of leading inputs that must not share the output's tensor: 0 for convolutions."""
    if node.op_type == "Concat":
        return int(attribute(node, INTO, len(node.inputs)))
    return 1 if node.op_type == "Resize" else 0


def _copied(concat: ir.Node, parts: Sequence[_Part]) -> list[int]:
    """The inputs that have to be copied."""
    written = {part.index for part in parts}
    return [i for i in range(len(concat.inputs)) if i not in written]


def _allowed(concat: ir.Node, parts: Sequence[_Part], lifetimes: Lifetimes) -> bool:
    """Return True if writing these parts in place saves time."""
    copied, widths = _copied(concat, parts), _widths(concat)
    # One dispatch copies adjacent parts. As many dispatches as before, for half of the bytes, save no time.
    if copied and (
        copied != list(range(copied[0], copied[-1] + 1)) or 2 * sum(widths[i] for i in copied) > sum(widths)
    ):
        return False
    written = {node.outputs[0] for part in parts for node in part.writers}
    if any(concat.inputs[i] in written for i in copied):
        return False  # a copy from a tensor into itself
    return lifetimes.joinable([part.value for part in parts], concat)


def _widths(concat: ir.Node) -> list[int]:
    """How many columns each input gives; 0 where that is unknown."""
    given = attribute(concat, X_COLUMNS)
    return [width or 0 for width in (given[1::2] if given else map(width_of, concat.inputs))]


def _place(value: ir.Value, position: Mapping[ir.Node, int]) -> int:
    made = value.producer()
    return -1 if made is None else position.get(made, -1)


def _aligned(*columns: int | None) -> bool:
    return all(number is not None and number % LANES == 0 for number in columns)


def _parts(node: ir.Node) -> list[tuple[ir.Value, int]]:
    """The outputs of a Split or Slice along the last axis, with their first columns."""
    if node.domain != "" or node.op_type not in ("Split", "Slice"):
        return []
    count, width = rank(node.inputs[0]), width_of(node.inputs[0])
    if count is None or width is None:
        return []
    if node.op_type == "Split":
        sizes = [size for output in node.outputs if (size := width_of(output)) is not None]
        if attribute(node, "axis", 0) % count != count - 1 or len(sizes) < len(node.outputs):
            return []
        return [(output, sum(sizes[:i])) for i, output in enumerate(node.outputs)]
    starts, axes, steps = (ints(v) for v in (*node.inputs[1:2], *(*node.inputs[3:5], None, None)[:2]))
    if starts is None or len(starts) != 1 or axes is None or axes[0] % count != count - 1 or (steps or [1]) != [1]:
        return []
    first = starts[0] + width if starts[0] < 0 else starts[0]
    return [(node.outputs[0], min(max(first, 0), width))]


def _fuse(concat: ir.Node, parts: Sequence[_Part], wide: dict[ir.Value, list[ir.Node]], lifetimes: Lifetimes) -> None:
    """Write the parts into one tensor, and copy the remaining ones."""
    widths, copied, given = _widths(concat), _copied(concat, parts), attribute(concat, X_COLUMNS)
    firsts, width = [sum(widths[:i]) for i in range(len(widths))], sum(widths)
    lifetimes.join([part.value for part in parts], concat)
    for part in parts:
        for node in part.writers:
            for user, index in list(node.outputs[0].uses()):
                if user is not concat and index != attribute(user, INTO):
                    take_columns(user, index, firsts[part.index], widths[part.index])
            first, _ = attribute(node, Y_COLUMNS) or (0, 0)
            set_attributes(node, **{Y_COLUMNS: [firsts[part.index] + first, width]})
            node.outputs[0].shape = ir.Shape([*(dims(node.outputs[0]) or [])[:-1], width])
        wide.pop(part.value, None)
    writers = sorted((node for part in parts for node in part.writers), key=lambda node: lifetimes.position[node])
    if copied:
        sources = [concat.inputs[i] for i in copied]
        columns = [n for i in copied for n in given[2 * i : 2 * i + 2]] if given else None
        concat.resize_inputs(len(sources))
        for i, source in enumerate(sources):
            concat.replace_input_with(i, source)
        set_attributes(concat, **{X_COLUMNS: columns, Y_COLUMNS: [firsts[copied[0]], width]})
        writers.append(concat)
    else:
        replace_value(concat.outputs[0], writers[-1].outputs[0])
        remove(concat)
    for i, node in enumerate(writers):
        _write_into(node, writers[i - 1].outputs[0] if i > 0 else None)
    lifetimes.renamed(concat.outputs[0], writers[-1].outputs[0])
    wide[writers[-1].outputs[0]] = writers


def _write_into(node: ir.Node, before: ir.Value | None) -> None:
    """Let the node write into that tensor, or make it itself."""
    into = attribute(node, INTO)
    if before is None:
        if into is not None:
            node.resize_inputs(into)
            set_attributes(node, **{INTO: None})
        return
    if into is None:
        into = len(node.inputs) if node.op_type == "Concat" else operator(node.domain, node.op_type).into or 0
        node.resize_inputs(into + 1)
        set_attributes(node, **{INTO: into})
    node.replace_input_with(into, before)

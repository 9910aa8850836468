"""Removes a Concat of all parts of a Split, and a Split into all parts of a Concat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_reading, only_user
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, ints, origins, rank, remove, replace_value, required


@rewrite("Concat")
def concats(node: ir.Node) -> int:
    """Join neighboring parts of a Split among the inputs of a Concat; then look at each Split by itself."""
    return _rejoined(node)


def _axis(node: ir.Node) -> int | None:
    count = rank(node.outputs[0])
    return None if count is None else attribute(node, "axis", 0) % count


def _sizes(values: Sequence[ir.Value | None], axis: int | None) -> list[Any]:
    """Return the sizes along the axis, as far as they are known."""
    known: list[Any] = [dims(value) for value in values]
    return [None if each is None or axis is None else each[axis] for each in known]


def _rejoined(node: ir.Node | None) -> int:
    """Replace consecutive inputs that are all parts of a Split by the Split's input, for each Split."""
    axis = None if node is None else _axis(node)
    if node is None or axis is None:
        return 0
    for at, value in enumerate(node.inputs):
        split = made_by(value, "Split")
        if split is None or value is not split.outputs[0] or _axis(split) != axis:
            continue
        parts = list(split.outputs)
        # Worth it where a part is not needed by itself any more.
        if list(node.inputs[at : at + len(parts)]) != parts or not any(only_user(part) is node for part in parts):
            continue
        inputs = [*node.inputs[:at], split.inputs[0], *node.inputs[at + len(parts) :]]
        build = Builder(node)
        if len(inputs) == 1:
            result = inputs[0]
        else:
            result = build.op("Concat", *inputs, axis=axis)
            result.shape = node.outputs[0].shape
        assert result is not None
        replace_value(node.outputs[0], result)
        remove(node)
        _narrowed(split)
        return 1 + (_rejoined(result.producer()) if len(inputs) > 1 else 0)
    return 0


def _narrowed(split: ir.Node) -> None:
    """A Split of which one part is read is a Slice."""
    read = [part for part in split.outputs if part.uses() or part.is_graph_output()]
    axis = _axis(split)
    sizes = _sizes(split.outputs, axis)
    if len(read) != 1 or axis is None or not all(isinstance(size, int) for size in sizes):
        return
    at = next(i for i, part in enumerate(split.outputs) if part is read[0])
    start = sum(sizes[:at])
    build = Builder(split)
    made = build.op("Slice", split.inputs[0], [start], [start + sizes[at]], [axis], [1])
    made.shape = read[0].shape
    replace_value(read[0], made)
    remove(split)


@concats.also("Split")
def _unsplit(node: ir.Node) -> bool:
    """Remove a Split into the parts that Concats joined, also through reshapes and other Concats."""
    axis, value = _axis(node), node.inputs[0]
    sizes = _sizes(node.outputs, axis)
    if axis is None or value is None or not all(isinstance(size, int) for size in sizes):
        return False
    build = Builder(node)
    plan = _plan(value, axis, sizes, node)
    if plan is None:
        return False
    for i, part in enumerate(node.outputs):
        made = _make(plan, i, build)
        made.shape = part.shape
        if part.uses() or part.is_graph_output():
            replace_value(part, made)
    remove(node)
    plan.ask_parts()
    return True


class _Plan:
    """How to get the parts of a value: as they are, or by doing `node` with the parts of its inputs."""

    def __init__(self, node: ir.Node, parts: Sequence[ir.Value] = (), inputs: Sequence[_Plan] = (), axis: int = 0):
        self.node, self.parts, self.inputs, self.axis = node, parts, inputs, axis

    def ask_parts(self) -> None:
        """Let nodes read sizes from the parts where the parts have them, too."""
        for inner in self.inputs:
            inner.ask_parts()
        for user, index in list(self.node.outputs[0].uses()) if self.parts else ():
            if user.op_type == "Shape":
                user.replace_input_with(index, self.parts[0])


def _plan(value: ir.Value | None, axis: int, sizes: list[int], user: ir.Node) -> _Plan | None:
    node = made_by(value, "Concat", "Reshape")
    if value is None or node is None or value.is_graph_output() or node.graph is not user.graph:
        return None
    joins = node.op_type == "Concat" and _axis(node) == axis
    if any(each is not user and not (joins and _asks_others(each, axis)) for each in nodes_reading(value)):
        return None
    if node.op_type == "Concat":
        if joins:
            own = _sizes(node.inputs, axis)
            return _Plan(node, [v for v in node.inputs if v is not None]) if own == sizes else None
        inputs = [_plan(v, axis, sizes, node) for v in node.inputs]
        return None if None in inputs else _Plan(node, inputs=[required(p) for p in inputs])
    before, after = dims(node.inputs[0]), dims(value)
    if before is None or after is None or axis >= len(before) or before[: axis + 1] != after[: axis + 1]:
        return None
    if sum(not isinstance(d, int) for d in after[axis + 1 :]) > 1:
        return None
    inner = _plan(node.inputs[0], axis, sizes, node)
    return None if inner is None else _Plan(node, inputs=[inner], axis=axis)


def _asks_others(node: ir.Node, axis: int) -> bool:
    """Return True if a node reads sizes of other axes only."""
    if (
        node.domain != ""
        or node.op_type != "Shape"
        or attribute(node, "start", 0)
        or attribute(node, "end") is not None
    ):
        return False
    asked = {made: ints(made.inputs[1]) for made in nodes_reading(node.outputs[0]) if made.op_type == "Gather"}
    if len(asked) < len(nodes_reading(node.outputs[0])) or node.outputs[0].is_graph_output():
        return False
    count = rank(node.inputs[0]) or 0
    return all(each is not None and all(i % count != axis for i in each) for each in asked.values())


def _make(plan: _Plan, part: int, build: Builder) -> ir.Value:
    if plan.parts:
        return plan.parts[part]
    inputs = [_make(inner, part, build) for inner in plan.inputs]
    build.origin = origins(plan.node)
    if plan.node.op_type == "Concat":
        made: ir.Value = build.op("Concat", *inputs, axis=_axis(plan.node))
        return made
    after = dims(plan.node.outputs[0]) or []
    target = [0] * (plan.axis + 1) + [d if isinstance(d, int) else -1 for d in after[plan.axis + 1 :]]
    result: ir.Value = build.op("Reshape", inputs[0], target)
    own = (dims(inputs[0]) or [])[: plan.axis + 1]
    result.shape = ir.Shape([*own, *after[plan.axis + 1 :]])
    return result

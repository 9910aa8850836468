"""Finds the tensor that contains the heads of queries, keys or values, through transposes, reshapes, splits, slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from py_ort.compiler.layout.reshape_rules import axis_groups
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, ints, rank, static_sizes
from py_ort.ir.rules import Rules

_FREE = 2  # axes before those of the heads: batch and position


@dataclass(frozen=True)
class _Axis:
    """One axis of a view: `stride` in elements, or, for batch and position, `free`, the axis of the root."""

    size: Any
    stride: int = 0
    free: int | None = None


@dataclass(frozen=True)
class _View:
    root: ir.Value
    axes: tuple[_Axis, ...]
    offset: int = 0


@dataclass(frozen=True)
class Heads:
    """Columns of `root` [batch, positions, …, …]: `count` heads of `size` columns each, from `offset` on."""

    root: ir.Value
    offset: int
    count: int
    size: int

    def rows(self, build: Builder) -> ir.Value:
        """Return the root as [batch, positions, width]."""
        if rank(self.root) == _FREE + 1:
            return self.root
        made: ir.Value = build.op("Reshape", self.root, [0, 0, self.width])
        known = dims(self.root) or []
        made.shape = ir.Shape([*known[:_FREE], self.width])
        return made

    @property
    def width(self) -> int:
        """Elements of a row of the root."""
        width = 1
        for size in (dims(self.root) or [])[_FREE:]:
            assert isinstance(size, int)
            width *= size
        return width


_step = Rules[Callable[[ir.Node, _View, ir.Value], "_View | None"]]()
"""The view that an operator makes of that of its first input."""


def heads_of(value: ir.Value | None, perm: Sequence[int] = (0, 1, 2, 3)) -> Heads | None:
    """Return the place of the heads of a value that is [batch, heads, positions, size] after a transpose by `perm`."""
    view = None if value is None else _view(value, 12)
    if view is None or len(view.axes) != len(perm):
        return None
    batch, head, position, size = (view.axes[a] for a in perm)
    if batch.free != 0 or position.free != 1 or head.free is not None or size.free is not None:
        return None
    if not isinstance(head.size, int) or not isinstance(size.size, int):
        return None
    if (size.size > 1 and size.stride != 1) or (head.size > 1 and head.stride != size.size):
        return None
    return Heads(view.root, view.offset, head.size, size.size)


def _view(value: ir.Value, depth: int) -> _View | None:
    """The view of the farthest value that this one is a part of."""
    node = value.producer()
    known = rank(value)
    step = None if node is None else _step.of(node)
    if node is not None and step is not None and depth > 0 and known is not None:
        source = node.inputs[0]
        below = _view(source, depth - 1) if source is not None and source.const_value is None else None
        if below is not None:
            made = step(node, below, value)
            if made is not None:
                return made
    return _whole(value)


def _whole(value: ir.Value) -> _View | None:
    sizes = dims(value) or []
    inner = static_sizes(sizes[_FREE:])
    if not inner:
        return None
    axes: list[_Axis] = []
    stride = 1
    for size in reversed(inner):
        axes.insert(0, _Axis(size, stride))
        stride *= size
    return _View(value, (*(_Axis(sizes[i], free=i) for i in range(_FREE)), *axes))


@_step("Transpose")
def _transpose(node: ir.Node, view: _View, value: ir.Value) -> _View | None:
    perm = attribute(node, "perm")
    return None if perm is None else _View(view.root, tuple(view.axes[a] for a in perm), view.offset)


@_step("Reshape")
def _reshape(node: ir.Node, view: _View, value: ir.Value) -> _View | None:
    target = dims(value)
    groups = None if target is None else axis_groups([axis.size for axis in view.axes], target)
    if groups is None or target is None:
        return None
    axes: list[_Axis] = []
    for left, right in groups:
        made = _regroup([view.axes[i] for i in left], [target[j] for j in right])
        if made is None:
            return None
        axes += made
    return _View(view.root, tuple(axes), view.offset)


def _regroup(old: list[_Axis], sizes: list[Any]) -> list[_Axis] | None:
    """Axes merged and split; axes of size 1 come and go."""
    old = [axis for axis in old if axis.size != 1 or axis.free is not None]
    if len(old) > 1 and any(axis.free is not None and axis.size == 1 for axis in old):
        old = [axis for axis in old if axis.size != 1]
    merged = old[0] if old else _Axis(1)
    for axis in old[1:]:
        if merged.free is not None or axis.free is not None or merged.stride != axis.stride * axis.size:
            return None
        merged = _Axis(merged.size * axis.size, axis.stride)
    wide = [i for i, size in enumerate(sizes) if size != 1]
    if len(wide) <= 1:
        at = wide[0] if wide else 0
        return [merged if i == at else _Axis(1) for i in range(len(sizes))]
    if merged.free is not None:
        return None
    made: list[_Axis] = []
    stride = merged.stride
    for size in reversed(sizes):
        made.insert(0, _Axis(size, stride))
        stride *= size
    return made


def _part(view: _View, axis: int, start: int, size: int) -> _View | None:
    cut = view.axes[axis]
    if cut.free is not None or start < 0:
        return None
    axes = (*view.axes[:axis], _Axis(size, cut.stride), *view.axes[axis + 1 :])
    return _View(view.root, axes, view.offset + start * cut.stride)


@_step("Gather")
def _gather(node: ir.Node, view: _View, value: ir.Value) -> _View | None:
    index = array(node.inputs[1])
    if index is None or index.size != 1 or index.ndim > 1:
        return None
    axis = attribute(node, "axis", 0) % len(view.axes)
    size = view.axes[axis].size
    if not isinstance(size, int):
        return None
    found = _part(view, axis, int(index.reshape(-1)[0]) % size, 1)
    return (
        found
        if found is None or index.ndim == 1
        else _View(found.root, (*found.axes[:axis], *found.axes[axis + 1 :]), found.offset)
    )


@_step("Slice")
def _slice(node: ir.Node, view: _View, value: ir.Value) -> _View | None:
    starts, ends, axes = (ints(v) for v in node.inputs[1:4]) if len(node.inputs) > 3 else (None, None, None)
    steps = ints(node.inputs[4]) if len(node.inputs) > 4 and node.inputs[4] is not None else None
    if starts is None or ends is None or axes is None or any(step != 1 for step in steps or ()):
        return None
    for start, end, axis in zip(starts, ends, axes, strict=True):
        size = view.axes[axis].size
        if not isinstance(size, int):
            return None
        first, last, _ = slice(start, end).indices(size)
        made = _part(view, axis % len(view.axes), first, max(0, last - first))
        if made is None:
            return None
        view = made
    return view


@_step("Split")
def _split(node: ir.Node, view: _View, value: ir.Value) -> _View | None:
    axis = attribute(node, "axis", 0) % len(view.axes)
    known: list[list[Any]] = [dims(output) or [None] * len(view.axes) for output in node.outputs]
    sizes = [each[axis] for each in known]
    at = next(i for i, output in enumerate(node.outputs) if output is value)
    if not all(isinstance(size, int) for size in sizes):
        return None
    return _part(view, axis, sum(sizes[:at]), sizes[at])


@_step("Squeeze")
def _squeeze(node: ir.Node, view: _View, value: ir.Value) -> _View | None:
    axes = ints(node.inputs[1]) if len(node.inputs) > 1 else None
    gone = None if axes is None else [a % len(view.axes) for a in axes]
    if gone is None or any(view.axes[a].free is not None for a in gone):
        return None
    return _View(view.root, tuple(axis for i, axis in enumerate(view.axes) if i not in gone), view.offset)


@_step("Unsqueeze")
def _unsqueeze(node: ir.Node, view: _View, value: ir.Value) -> _View | None:
    axes = ints(node.inputs[1])
    if axes is None:
        return None
    made = list(view.axes)
    for axis in sorted(a % (len(view.axes) + len(axes)) for a in axes):
        made.insert(axis, _Axis(1))
    return _View(view.root, tuple(made), view.offset)

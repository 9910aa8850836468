"""Finds values that are parts of another value's last axis, through slices, splits and reshapes with an axis of two."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, same_size, size_at
from py_ort.ir.graph import attribute, dims, ints, rank
from py_ort.ir.slicing import sliced

_DEPTH = 4


@dataclass(frozen=True)
class Part:
    """Elements start, start + step, … of the last axis of `source`, `size` of them."""

    source: ir.Value
    start: int
    size: int
    step: int = 1


def parts(value: ir.Value | None) -> list[Part]:
    """Return the values that this one is a part of: itself, and those that it was sliced from."""
    known = dims(value)
    if value is None or not known or not isinstance(known[-1], int):
        return []
    found = [Part(value, 0, known[-1])]
    for _ in range(_DEPTH):
        outer = _part(found[-1].source)
        if outer is None:
            break
        inner = found[-1]
        found.append(Part(outer.source, outer.start + inner.start * outer.step, inner.size, inner.step * outer.step))
    return found


def pair(first: ir.Value | None, second: ir.Value | None) -> tuple[Part, Part] | None:
    """Two parts of one value, the nearest that both come from."""
    others = parts(second)
    for one in parts(first):
        for other in others:
            if one.source is other.source:
                return one, other
    return None


def _part(value: ir.Value) -> Part | None:
    """Return the step from a value to the value that it was sliced from."""
    node = made_by(value, "Slice", "Split", "Gather", "Squeeze", "Reshape")
    return None if node is None else {"Slice": _slice, "Split": _split}.get(node.op_type, _of_two)(node, value)


def _slice(node: ir.Node, value: ir.Value) -> Part | None:
    cut, known = _bounds(node), dims(node.inputs[0])
    if cut is None or known is None or node.inputs[0] is None or cut[3] != len(known) - 1:
        return None
    wide = known[-1]
    if not isinstance(wide, int) or cut[2] < 1:
        return None
    elements = sliced(wide, *cut[:3])
    return Part(node.inputs[0], elements.start, len(elements), cut[2]) if elements else None


def _bounds(node: ir.Node) -> tuple[int, int, int, int] | None:
    """Return start, end, step and axis of a Slice along one axis; None for any other."""
    given = [ints(v) for v in node.inputs[1:]]
    count = rank(node.inputs[0])
    if len(given) < 3 or any(g is None or len(g) != 1 for g in given) or count is None:
        return None
    start, end, axis, *step = (g[0] for g in given if g is not None)
    return start, end, step[0] if step else 1, axis % count


def _split(node: ir.Node, value: ir.Value) -> Part | None:
    known = dims(node.inputs[0])
    if known is None or node.inputs[0] is None or attribute(node, "axis", 0) % len(known) != len(known) - 1:
        return None
    start = 0
    for output in node.outputs:
        size = size_at(output)
        if not isinstance(size, int):
            return None
        if output is value:
            return Part(node.inputs[0], start, size)
        start += size
    return None


def _of_two(node: ir.Node, value: ir.Value) -> Part | None:
    """One of two along an axis that a Reshape made of the last axis: neighbors or halves."""
    if node.op_type == "Gather":
        index, axis, folded = ints(node.inputs[1]), attribute(node, "axis", 0), node.inputs[0]
        if index is None or len(index) != 1 or rank(node.inputs[1]) != 0:
            return None
        at = index[0]
    else:  # a Squeeze, or a Reshape like one, of a Slice or a Split
        cut = made_by(node.inputs[0], "Slice", "Split")
        if cut is None or node.inputs[0] is None:
            return None
        folded = cut.inputs[0]
        if cut.op_type == "Slice":
            bounds = _bounds(cut)
            if bounds is None:
                return None
            at, axis = bounds[0], bounds[3]
        else:
            at, axis = list(cut.outputs).index(node.inputs[0]), attribute(cut, "axis", 0)
        if size_at(node.inputs[0], axis) != 1:
            return None
    fold = made_by(folded, "Reshape")
    whole, known, result = (None if fold is None else dims(fold.inputs[0])), dims(folded), dims(value)
    if fold is None or whole is None or known is None or result is None or len(known) != len(whole) + 1:
        return None
    axis %= len(known)
    if known[axis] != 2 or not all(map(same_size, known[: len(whole) - 1], whole[:-1])) or len(result) != len(whole):
        return None
    if not all(map(same_size, result[:-1], whole[:-1])):
        return None
    size = known[-1] if axis == len(known) - 2 else known[-2]
    source, at = fold.inputs[0], at % 2
    if axis < len(known) - 2 or not isinstance(size, int) or result[-1] != size or source is None:
        return None
    return Part(source, at * size, size) if axis == len(known) - 2 else Part(source, at, size, 2)

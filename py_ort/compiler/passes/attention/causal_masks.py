"""Proves that a mask is causal: each query sees the keys up to its own position, and no others.

A causal mask has an offset: query i sees key j if j <= i + offset. An offset is a number, a sum of sizes (which must
equal the past's), or computed by a run (`Running`), such as the first free place in a cache of fixed length. In the
last case the operator receives the number of valid keys (`nonpad_kv_seqlen`) instead of a mask. One mask of several
becomes causal only if it masks with -∞; with another number, rows without any key would differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, same_size, size_at
from py_ort.ir.graph import array, attribute, dims, ints, rank, required, scalar
from py_ort.ir.operators import op_types, operator
from py_ort.ir.shape_data import known, shape_data

_DEPTH = 16


@dataclass(frozen=True)
class Running:
    """The single number of a tensor, plus a constant; `alike`: all queries see the same keys as the first."""

    value: ir.Value
    plus: int = 0
    alike: bool = False

    def __sub__(self, number: int) -> Running:
        return replace(self, plus=self.plus - number)


@dataclass(frozen=True)
class Triangle:
    """Where j <= i + offset; the truth there is `inside`, or, of numbers, 1 for true."""

    offset: Any
    inside: bool

    def transposed(self) -> Triangle:
        """The other truths."""
        return Triangle(self.offset, not self.inside)


def added_mask(value: ir.Value | None) -> tuple[Any, float] | None:
    """Return the offset of a causal mask that is added to scores, and the number that masks; else None."""
    value = _core(value)
    contents = array(value)
    if contents is not None:
        return _of_numbers(contents)
    node = None if value is None else value.producer()
    if node is None or node.domain != "":
        return None
    if node.op_type == "Where":
        fills = scalar(node.inputs[1]), scalar(node.inputs[2])
        found = truths(node.inputs[0])
        if found is None or None in fills:
            return None
        shown, hidden = fills if found.inside else fills[::-1]
        return (found.offset, float(required(hidden))) if shown == 0 else None
    if node.op_type == "Trilu":
        fill, k = _filled(node.inputs[0]), _diagonal(node)
        return (k - 1, fill) if attribute(node, "upper", 1) and fill is not None and k is not None else None
    if node.op_type != "Slice":
        return None
    inner = added_mask(node.inputs[0])
    moved = None if inner is None else _moved(node, inner[0])
    return None if moved is None or inner is None else (moved, inner[1])


def truths(value: ir.Value | None, depth: int = _DEPTH) -> Triangle | None:
    """Return the triangle of a boolean tensor, or of zeros and ones; None if it has none."""
    value = _core(value)
    if array(value) is not None:
        return _of_truths(array(value))
    node = None if value is None else value.producer()
    if node is None or node.domain != "" or depth == 0:
        return None
    if node.op_type == "Not":
        found = truths(node.inputs[0], depth - 1)
        return None if found is None else found.transposed()
    if node.op_type == "Equal":
        for at in (0, 1):
            number, found = scalar(node.inputs[at]), None
            if number in (0, 1):
                found = truths(node.inputs[1 - at], depth - 1)
            if found is not None:
                return found if number == 1 else found.transposed()
        return None
    if node.op_type == "Trilu":
        k, upper = _diagonal(node), attribute(node, "upper", 1)
        if _filled(node.inputs[0]) != 1 or k is None:
            return None
        return Triangle(k - 1, False) if upper else Triangle(k, True)
    if node.op_type == "Slice":
        found = truths(node.inputs[0], depth - 1)
        moved = None if found is None else _moved(node, found.offset)
        return None if found is None or moved is None else Triangle(moved, found.inside)
    return _compared(node)


def in_rows(offset: Any, mask: ir.Value, queries: Any) -> Any:
    """Return the offset of a mask with a row for each query, or one row for all."""
    if size_at(mask, -2) != 1 or queries == 1:
        return offset
    return replace(offset, alike=True) if isinstance(offset, Running) else None


def same_offset(offset: Any, past: Any) -> bool:
    """Return True if the offset is the number of keys before the first query's own."""
    return known(offset) and known(past) and bool(offset == past)


def _core(value: ir.Value | None) -> ir.Value | None:
    """The value behind casts and leading axes of size 1, or repeated ones."""
    for _ in range(_DEPTH):
        node = made_by(value, *op_types("converts"), *op_types("view"), "Expand")
        same = node is not None and operator("", node.op_type).converts
        if node is None or not (same or _keeps_plane(node.inputs[0], node.outputs[0])):
            break
        value = node.inputs[0]
    return value


def _keeps_plane(before: ir.Value | None, after: ir.Value) -> bool:
    """Return True if the last two axes stay, and the others have one plane, or copies of one."""
    a, b = dims(before), dims(after)
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return False
    return all(map(same_size, a[-2:], b[-2:])) and all(d == 1 for d in a[:-2])


def _of_numbers(contents: np.ndarray) -> tuple[Any, float] | None:
    if contents.dtype.kind != "f":
        return None
    found = _of_truths(contents == 0)
    if found is None or not found.inside:
        return None
    hidden = contents[contents != 0]
    return (found.offset, float(hidden.max())) if hidden.size else None


def _of_truths(contents: np.ndarray | None) -> Triangle | None:
    if contents is None or contents.ndim < 2 or contents.size != contents.shape[-1] * contents.shape[-2]:
        return None
    plane: np.ndarray = contents.reshape(contents.shape[-2:])
    if plane.dtype.kind != "b" and not np.isin(plane, (0, 1)).all():
        return None
    plane = plane.astype(bool)
    if not plane.size:
        return None
    inside = bool(plane[-1, 0])
    seen = plane if inside else ~plane
    offset = int(seen[0].sum()) - 1
    # One that masks nothing has no offset.
    if seen.all() or not np.array_equal(seen, np.tri(len(seen), len(seen[0]), offset, dtype=bool)):
        return None
    return Triangle(offset, inside)


def _filled(value: ir.Value | None) -> float | None:
    """The one number that a tensor is full of."""
    for _ in range(_DEPTH):
        contents = array(value)
        if contents is not None:
            same = contents.size > 0 and (contents == contents.reshape(-1)[0]).all()
            return float(contents.reshape(-1)[0]) if same else None
        node = made_by(value, *op_types("converts"), "Identity", "Expand", "ConstantOfShape")
        if node is None:
            return None
        if node.op_type == "ConstantOfShape":
            given = attribute(node, "value")
            return 0.0 if given is None else float(given.numpy().reshape(-1)[0])
        value = node.inputs[0]
    return None


def _diagonal(node: ir.Node) -> int | None:
    k = scalar(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else 0
    return None if k is None else int(k)


def _moved(node: ir.Node, offset: Any) -> Any:
    """The offset within a Slice's result: where it starts counts, its ends do not."""
    axes, count = ints(node.inputs[3]) if len(node.inputs) > 3 else None, rank(node.inputs[0])
    starts = shape_data(node.inputs[1])
    steps = ints(node.inputs[4]) if len(node.inputs) > 4 and node.inputs[4] is not None else [1]
    if axes is None or starts is None or count is None or any(s != 1 for s in steps or [0]):
        return None
    for start, axis in zip(starts, axes, strict=True):
        if not known(start) or (isinstance(start, int) and start < 0) or not known(offset):
            return None
        if axis % count == count - 2:
            offset = offset + start if isinstance(start, int) else start + offset
        elif axis % count == count - 1 and start != 0:
            return None
    return offset


def _compared(node: ir.Node) -> Triangle | None:
    """Positions of keys against positions of queries."""
    if node.op_type not in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        return None
    left, right = (_positions(v) for v in node.inputs)
    if left is None or right is None:
        return None
    axes = left[1] or _OTHER.get(right[1]), right[1] or _OTHER.get(left[1])
    if set(axes) != {-1, -2}:
        return None
    less = node.op_type.startswith("Less")
    keys, queries = left[0], right[0]
    if axes[0] == -2:  # queries first: the other way round
        keys, queries, less = queries, keys, not less
    if not isinstance(keys, int) and (isinstance(queries, int | Running) or isinstance(keys, Running)):
        return None
    if isinstance(queries, Running) and not isinstance(keys, int):
        return None
    offset = queries - keys
    or_equal = node.op_type.endswith("OrEqual")
    if less:
        return Triangle(offset if or_equal else offset - 1, True)
    return Triangle(offset - 1 if or_equal else offset, False)


_ANY_AXIS = 0
_OTHER = {-1: -2, -2: -1}


def _positions(value: ir.Value | None) -> tuple[Any, int] | None:
    """The first of consecutive numbers, and the axis, from the end, that they go along; one number may go along any."""
    axis: int | None = None
    moved: ir.Value | None = None
    for _ in range(_DEPTH):
        node = None if value is None else value.producer()
        if value is None:
            return None
        count = rank(value) or 0
        if count >= 2 and axis is None:
            sizes = dims(value) or []
            axis = _ANY_AXIS if sizes[-2:] == [1, 1] else -1 if sizes[-2] == 1 else -2 if sizes[-1] == 1 else None
            if axis is None or any(d != 1 for d in sizes[:-2]):
                return None
        contents = array(value)
        if contents is not None:
            flat = contents.reshape(-1)
            steady = (
                flat.size > 0 and contents.dtype.kind in "if" and np.array_equal(flat, flat[0] + np.arange(flat.size))
            )
            return _from(int(flat[0]), moved, axis) if steady else None
        if node is not None and node.domain == "" and node.op_type == "Range":
            start = shape_data(node.inputs[0])
            steady = bool(start) and known(required(start)[0]) and scalar(node.inputs[2]) == 1
            return _from(required(start)[0], moved, axis) if steady else None
        if node is not None and node.domain == "" and node.op_type == "Add" and moved is None:
            at = next((i for i in (0, 1) if _is_one(node.inputs[i]) and array(node.inputs[i]) is None), None)
            if at is None:
                return None
            moved, value = node.inputs[at], node.inputs[1 - at]
            continue
        if node is None or made_by(value, *op_types("view"), "Cast") is None:
            # A number that only the run computes.
            return (Running(value), _ANY_AXIS) if axis == _ANY_AXIS and moved is None and _is_integer(value) else None
        value = node.inputs[0]
    return None


def _from(start: Any, moved: ir.Value | None, axis: int | None) -> tuple[Any, int] | None:
    axis = -1 if axis is None else axis
    if moved is None:
        return start, axis
    return (Running(moved, start), axis) if isinstance(start, int) and _is_integer(moved) else None


def _is_one(value: ir.Value | None) -> bool:
    known_dims = dims(value)
    return known_dims is not None and all(d == 1 for d in known_dims)


def _is_integer(value: ir.Value) -> bool:
    return value.dtype in (ir.DataType.INT64, ir.DataType.INT32)

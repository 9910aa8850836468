"""x[i, j] looked up for all i and j from 0 on → x, or its first rows and columns.

So transformers make masks: by a function of batch and position, which asks the given mask of each pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import reshape_target
from py_ort.compiler.passes.clean.reshapes import EXACT
from py_ort.compiler.passes.match import drop, made_by, same_size
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, origins, rank, required, scalar
from py_ort.ir.shape_data import shape_data

_DEPTH = 8
Line = tuple[int, ir.Value]
"""The axis along which a tensor counts from 0, and the limit; along all others it is the same."""


@rewrite("GatherND")
def index_grids(node: ir.Node) -> bool:
    """Look at tensors of two axes: by GatherND, then by Gather from all elements in a row."""
    return _fuse(node, _pairs(node))


@index_grids.also("Gather")
def _of_all_elements(node: ir.Node) -> bool:
    return _fuse(node, _in_a_row(node))


Grid = tuple[ir.Value, "tuple[Line, Line] | None"]
"""The tensor that is read, and the lines of its two indices; None: each index runs over a whole axis."""


def _pairs(node: ir.Node) -> Grid | None:
    x, indices = node.inputs[:2]
    known, wide = dims(x), dims(indices)
    if x is None or known is None or wide is None or len(known) != 2 or attribute(node, "batch_dims", 0):
        return None
    contents = array(indices)
    if contents is not None:
        sizes = [size for size in known if isinstance(size, int)]
        if len(sizes) < 2 or contents.size != 2 * sizes[0] * sizes[1]:
            return None
        every = np.indices(sizes).reshape(2, -1).T
        return (x, None) if np.array_equal(contents.reshape(-1, 2), every) else None
    join = made_by(indices, "Concat")
    if join is None or len(join.inputs) != 2 or attribute(join, "axis", 0) not in (-1, len(wide) - 1):
        return None
    lines = [_line(v) for v in join.inputs]
    return None if lines[0] is None or lines[1] is None else (x, (lines[0], lines[1]))


def _in_a_row(node: ir.Node) -> Grid | None:
    """Element i * columns + j of all elements."""
    flat, plus = made_by(node.inputs[0], "Flatten", "Reshape"), made_by(node.inputs[1], "Add")
    x = None if flat is None else flat.inputs[0]
    known, count = dims(x), rank(node.inputs[0])
    row = dims(node.inputs[0])
    if x is None or plus is None or known is None or len(known) != 2 or attribute(node, "axis", 0) != 0 or row is None:
        return None
    if count not in (1, 2) or (count == 2 and row[1] != 1):
        return None
    for at in (0, 1):
        times = made_by(plus.inputs[at], "Mul")
        columns = _line(plus.inputs[1 - at])
        for side in (0, 1) if times is not None and columns is not None else ():
            width = shape_data(required(times).inputs[1 - side])
            rows = _line(required(times).inputs[side])
            if rows is not None and columns is not None and width and len(width) == 1 and same_size(width[0], known[1]):
                offset = (rank(plus.outputs[0]) or 0) - (rank(required(times).outputs[0]) or 0)
                shift = (rank(plus.outputs[0]) or 0) - (rank(plus.inputs[1 - at]) or 0)
                return x, ((rows[0] + offset, rows[1]), (columns[0] + shift, columns[1]))
    return None


def _line(value: ir.Value | None, depth: int = _DEPTH) -> Line | None:
    node = made_by(value, "Range", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Cast", "Identity")
    known = dims(value)
    if node is None or known is None or depth == 0:
        return None
    if node.op_type == "Range":
        starts = scalar(node.inputs[0]) == 0 and scalar(node.inputs[2]) == 1
        return (0, node.inputs[1]) if starts and node.inputs[1] is not None else None
    inner, before = _line(node.inputs[0], depth - 1), dims(node.inputs[0])
    if inner is None or before is None:
        return None
    axis, limit = inner
    if node.op_type in ("Cast", "Identity"):
        return inner
    if node.op_type == "Expand":
        at = axis + len(known) - len(before)
        return (at, limit) if same_size(known[at], before[axis]) else None
    # Axes of size 1 come and go.
    old, new = ([i for i, size in enumerate(sizes) if size != 1] for sizes in (before, known))
    if (
        axis not in old
        or len(old) != len(new)
        or not all(same_size(before[a], known[b]) for a, b in zip(old, new, strict=True))
    ):
        return None
    return new[old.index(axis)], limit


def _fuse(node: ir.Node, grid: Grid | None) -> bool:
    result = dims(node.outputs[0])
    if grid is None or result is None:
        return False
    x, lines = grid
    build = Builder(node, origin=origins(node))
    sizes: list[Any] = dims(x) or []
    target: Any = reshape_target(result, sizes)
    if lines is not None:
        (first, rows), (second, columns) = lines
        if not first < second < len(result) or any(d != 1 for i, d in enumerate(result) if i not in (first, second)):
            return False
        wanted = [result[first], result[second]]
        ends = [build.op("Reshape", limit, [1]) for limit in (rows, columns)]
        short = [i for i in (0, 1) if not same_size(sizes[i], wanted[i])]
        if short:
            end = build.op("Concat", *ends, axis=0) if len(short) > 1 else ends[short[0]]
            cut = build.op("Slice", x, [0] * len(short), end, short)
            cut.type, cut.shape = x.type, ir.Shape(wanted)
            x = cut
        # Not by the sizes of x: looking up would have failed in feeds that are smaller than declared.
        each = [ends[0] if i == first else ends[1] if i == second else [1] for i in range(len(result))]
        target = build.op("Concat", *each, axis=0)
    elif target is None:
        return False
    inputs = list(node.inputs)
    found = build.op("Reshape", x, target)
    if lines is not None:
        found.producer().meta[EXACT] = True
    found.shape = ir.Shape(result)
    build.finish(found)
    for value in inputs:
        drop(value)
    return True

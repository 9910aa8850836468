"""com.microsoft's SparseAttention: queries see the blocks of keys that a layout of their head has.

Layouts are lists of blocks by rows: GroupQueryAttention does the rest, with a bias that masks all other keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute
from py_ort.ir.operators import MICROSOFT, Operator, lowering

_INT32, _INT64 = int(ir.DataType.INT32), int(ir.DataType.INT64)
_SCALAR = np.array([], np.int64)


OPERATORS = [Operator("SparseAttention", domain=MICROSOFT, host=(7,))]


@lowering("SparseAttention", domain=MICROSOFT)
def sparse_attention(node: ir.Node, build: Builder) -> Any:
    """Head h has layout h modulo their count."""
    query, key, value, *past, rows, columns, total, lengths = node.inputs[:9]
    angles = [*node.inputs[9:11], None, None][:2] if attribute(node, "do_rotary", 0) == 1 else [None, None]
    heads, size = attribute(node, "num_heads"), attribute(node, "sparse_block_size")
    if query is None or query.dtype is None or heads is None or not size or size < 1:
        raise inconsistent(node, f"num_heads is {heads} and sparse_block_size {size}: both must be above 0")
    seen = _blocks(build, rows, columns)
    places = build.op("Div", _positions(build, query, total, lengths), np.array(size, np.int32))
    most = build.op("Sub", _count(build, seen, 1), np.array([1], np.int32))
    mine = build.op("Gather", seen, build.op("Min", places, most), axis=1)  # [layouts, batch, rows, blocks]
    keys = build.op("Div", _range(build, total), np.array(size, np.int32))
    mine = build.op("Transpose", build.op("Gather", mine, keys, axis=3), perm=[1, 0, 2, 3])
    # Heads by turns.
    repeats_each = build.op("Div", np.array([heads]), build.op("Shape", rows, start=0, end=1))
    repeats = build.op("Concat", np.array([1]), repeats_each, np.array([1, 1]), axis=0)
    mine = build.op("Tile", mine, repeats)
    kind = query.dtype.numpy()
    lowest = np.finfo(kind).min if kind.type in (np.float32, np.float16) else -1e30
    bias = build.op("Where", mine, np.array(0, kind), np.array(lowest, kind))
    ends = build.op("Sub", lengths, np.array(1, np.int32))
    names = ("num_heads", "kv_num_heads", "scale", "do_rotary", "rotary_interleaved")
    given = {name: attribute(node, name) for name in names}
    inputs = [query, key, value, *past, ends, total, *angles, None, bias]
    made = build.op("GroupQueryAttention", *inputs, domain=MICROSOFT, outputs=3, **given)
    return tuple(made[: len(node.outputs)])


def _count(build: Builder, value: Any, axis: int) -> Any:
    """The size of an axis, [1] of int32."""
    return build.op("Cast", build.op("Shape", value, start=axis, end=axis + 1), to=_INT32)


def _range(build: Builder, count: Any) -> Any:
    """0, 1, … of int32."""
    return build.op("Range", np.array(0, np.int32), build.op("Reshape", count, _SCALAR), np.array(1, np.int32))


def _positions(build: Builder, query: Any, total: Any, lengths: Any) -> Any:
    """Where new rows are in their texts, [batch, rows]: with nothing before the longest, all begin at 0."""
    new = _count(build, query, 1)
    begins = build.op("Sub", lengths, new)
    first = build.op("Equal", build.op("Reshape", total, np.array([1])), new)
    begins = build.op("Where", first, np.array([0], np.int32), begins)
    return build.op("Add", build.op("Unsqueeze", begins, np.array([1])), _range(build, new))


def _blocks(build: Builder, rows: Any, columns: Any) -> Any:
    """Return a tensor of truths [layouts, rows, columns]: true where a layout has a block.

    `rows` [layouts, rows + 1] says where a row's columns begin and end; `columns` is padded at its end.
    """
    layouts, size, most = (_count(build, rows, 0), _count(build, rows, 1), _count(build, columns, 1))
    size = build.op("Sub", size, np.array([1], np.int32))
    ends = build.op("Slice", rows, np.array([1]), np.array([2**31 - 1]), np.array([1]))
    entry = _range(build, most)
    # The row of an entry: how many rows end before it.
    before = build.op("LessOrEqual", build.op("Unsqueeze", ends, np.array([2])), entry)
    row = build.op("ReduceSum", build.op("Cast", before, to=_INT32), np.array([1]), keepdims=0)
    plane = build.op("Mul", size, size)
    place = build.op("Add", build.op("Mul", row, size), columns)
    place = build.op("Where", build.op("Less", row, size), place, plane)  # padding goes behind the plane
    shape = build.op("Concat", layouts, build.op("Add", plane, np.array([1], np.int32)), axis=0)
    nothing = build.op("ConstantOfShape", build.op("Cast", shape, to=_INT64), value=np.zeros(1, np.int32))
    ones = build.op("Add", build.op("Sub", columns, columns), np.array(1, np.int32))
    found = build.op("ScatterElements", nothing, build.op("Cast", place, to=_INT64), ones, axis=1)
    found = build.op("Slice", found, np.array([0]), build.op("Cast", plane, to=_INT64), np.array([1]))
    planes = build.op("Cast", build.op("Concat", layouts, size, size, axis=0), to=_INT64)
    return build.op("Cast", build.op("Reshape", found, planes), to=int(ir.DataType.BOOL))

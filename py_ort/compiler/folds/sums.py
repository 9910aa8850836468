"""Reductions, running sums and products of matrices.

Floats are summed as float64 and rounded once, nearer to the true sum than any kernel is. Where a kernel's sum could
leave the range of its type, or lose what is too small for it, the kernel shall have it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import FLOATS, NUMBERS, WIDE_INTEGERS, Arrays, fold, has_nan, is_float, wide
from py_ort.ir.graph import attribute

_SUMMED = (*FLOATS, *WIDE_INTEGERS)
_SHORT = (ir.DataType.INT16, ir.DataType.UINT16)
#: Multiplications of a product that take numpy some tenths of a second; the core has better kernels for more of them.
_MOST_OF_FLOATS, _MOST_OF_INTEGERS = 1 << 30, 1 << 25
_MOST, _LEAST = 1e15, 1e-15  # of which squares and their sums are numbers of float32


def _within(sizes: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Return True if sums of these magnitudes stay in the range of a dtype."""
    limit = float(np.finfo(np.float32 if dtype.itemsize <= 4 and dtype != np.float16 else dtype).max)
    return bool(np.all(sizes < limit))  # false if one is not a number


def _axes(node: ir.Node, inputs: Arrays) -> tuple[int, ...] | None:
    axes = inputs[1] if len(inputs) > 1 else None
    if axes is None or axes.size == 0:
        return tuple(range(inputs[0].ndim)) if not attribute(node, "noop_with_empty_axes", 0) else None
    return tuple(int(axis) for axis in axes.reshape(-1))


def _kept(node: ir.Node) -> bool:
    return attribute(node, "keepdims", 1) != 0


@fold("ReduceSum", dtypes=_SUMMED)
def _reduced_sum(node: ir.Node, inputs: Arrays) -> Any:
    """Integers wrap."""
    x, axes = inputs[0], _axes(node, inputs)
    if x.size == 0 or axes is None:
        return None
    if not is_float(x):
        return np.sum(x, axis=axes, keepdims=_kept(node), dtype=x.dtype)
    if not _within(np.sum(np.abs(wide(x)), axis=axes), x.dtype):
        return None
    return np.sum(wide(x), axis=axes, keepdims=_kept(node)).astype(x.dtype)


@fold("ReduceMean", dtypes=FLOATS)
def _reduced_mean(node: ir.Node, inputs: Arrays) -> Any:
    x, axes = inputs[0], _axes(node, inputs)
    if x.size == 0 or axes is None or not _within(np.sum(np.abs(wide(x)), axis=axes), x.dtype):
        return None
    return np.mean(wide(x), axis=axes, keepdims=_kept(node)).astype(x.dtype)


@fold("ReduceL2", "ReduceSumSquare", dtypes=FLOATS)
def _reduced_squares(node: ir.Node, inputs: Arrays) -> Any:
    x, axes = inputs[0], _axes(node, inputs)
    sizes = np.abs(wide(x))
    if x.size == 0 or axes is None or not np.all((sizes == 0) | ((sizes > _LEAST) & (sizes < _MOST))):
        return None
    squares = np.sum(sizes * sizes, axis=axes, keepdims=_kept(node))
    if not _within(squares, x.dtype):
        return None
    return (squares if node.op_type == "ReduceSumSquare" else np.sqrt(squares)).astype(x.dtype)


@fold("ReduceProd", dtypes=WIDE_INTEGERS)
def _reduced_product(node: ir.Node, inputs: Arrays) -> Any:
    """Integers wrap."""
    x, axes = inputs[0], _axes(node, inputs)
    return None if x.size == 0 or axes is None else np.prod(x, axis=axes, keepdims=_kept(node), dtype=x.dtype)


@fold("ReduceMax", "ReduceMin", dtypes=tuple(t for t in NUMBERS if t not in _SHORT))
def _reduced_extreme(node: ir.Node, inputs: Arrays) -> Any:
    x, axes = inputs[0], _axes(node, inputs)
    if x.size == 0 or axes is None or has_nan(x):
        return None
    return (np.max if node.op_type == "ReduceMax" else np.min)(x, axis=axes, keepdims=_kept(node))


@fold("CumSum", dtypes=_SUMMED)
def _running_sum(node: ir.Node, inputs: Arrays) -> Any:
    x, axis = inputs[0], int(inputs[1].reshape(-1)[0])
    if is_float(x) and not _within(np.sum(np.abs(wide(x)), axis=axis), x.dtype):
        return None
    ordered = np.flip(wide(x), axis) if attribute(node, "reverse", 0) else wide(x)
    sums = np.cumsum(ordered, axis, dtype=ordered.dtype)
    if attribute(node, "exclusive", 0):
        sums = np.concatenate([np.zeros_like(np.take(sums, [0], axis)), np.delete(sums, -1, axis)], axis)
    return (np.flip(sums, axis) if attribute(node, "reverse", 0) else sums).astype(x.dtype)


def _multiplications(a: np.ndarray, b: np.ndarray) -> int:
    columns = b.shape[-1] if b.ndim > 1 else 1
    return math.prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * math.prod(a.shape[-2:]) * columns


@fold("MatMul", dtypes=_SUMMED)
def _product(node: ir.Node, inputs: Arrays) -> Any:
    a, b = inputs
    if _multiplications(a, b) > (_MOST_OF_FLOATS if is_float(a) else _MOST_OF_INTEGERS):
        return None
    if not is_float(a):
        return np.matmul(a, b)
    if not _within(np.matmul(np.abs(wide(a)), np.abs(wide(b))), a.dtype):
        return None
    return np.matmul(wide(a), wide(b)).astype(a.dtype)

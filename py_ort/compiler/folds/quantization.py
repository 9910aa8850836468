"""Quantized numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import Arrays, fold
from py_ort.ir.graph import attribute

_QUANTIZED = tuple(ir.DataType[name] for name in ("INT4", "UINT4", "INT8", "UINT8", "INT16", "UINT16", "INT32"))


@fold("DequantizeLinear", dtypes=_QUANTIZED)
def _dequantized(node: ir.Node, inputs: Arrays) -> Any:
    """(x - zero point) * scale, as float32, rounded to the scale's dtype."""
    x, scale, zero = (*inputs, None)[:3]
    if scale.dtype not in (np.float32, np.float16) or attribute(node, "output_dtype", 0):
        return None
    factors = _spread(node, scale, x.shape)
    offsets = None if zero is None else _spread(node, zero, x.shape)
    if factors is None or (zero is not None and offsets is None):
        return None
    whole = x.astype(np.int64) if offsets is None else x.astype(np.int64) - offsets.astype(np.int64)
    return (whole.astype(np.float32) * factors.astype(np.float32)).astype(scale.dtype)


def _spread(node: ir.Node, each: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return what there is of a tensor, an axis' places or blocks of them, as something that broadcasts to `shape`."""
    if each.size == 1 and each.ndim <= 1:
        return each.reshape(())
    axis, block = attribute(node, "axis", 1), attribute(node, "block_size", 0)
    if not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    if block:
        if each.ndim != len(shape):
            return None
        wide = np.repeat(each, block, axis)[tuple(slice(size) for size in shape)]
        return wide if wide.shape == shape else None
    if each.shape != (shape[axis],):
        return None
    return each.reshape([-1 if i == axis else 1 for i in range(len(shape))])

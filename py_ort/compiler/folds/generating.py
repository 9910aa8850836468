"""Operators that make a tensor of few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import BOOL, FLOATS, INTEGERS, NUMBERS, Arrays, fold, is_float, wide
from py_ort.ir.graph import attribute

_EXACT = {2: 1 << 8, 4: 1 << 24, 8: 1 << 53}  # floats of so many bytes up to here have all integers


@fold("ConstantOfShape", dtypes=(ir.DataType.INT64,))
def _filled(node: ir.Node, inputs: Arrays) -> Any:
    value = attribute(node, "value")
    if value is not None and value.dtype not in (*NUMBERS, *BOOL):
        return None
    element = np.float32(0) if value is None else value.numpy().reshape(-1)[0]
    return np.broadcast_to(element, tuple(int(d) for d in inputs[0]))


@fold("Range", dtypes=(*FLOATS, *(t for t in INTEGERS if t.is_signed() and t.bitwidth > 8)))
def _counted(node: ir.Node, inputs: Arrays) -> Any:
    """Whole numbers: sums of fractions depend on their order."""
    numbers = [wide(item.reshape(-1))[0].item() for item in inputs]
    if is_float(inputs[0]):
        limit = _EXACT[inputs[0].dtype.itemsize]
        if not all(float(n).is_integer() and abs(n) < limit for n in numbers):
            return None
    found = range(*(int(n) for n in numbers))
    return np.arange(found.start, found.start + len(found) * found.step, found.step).astype(inputs[0].dtype)

"""Comparisons, truths and bits, element by element, with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import ANY, BOOL, FLOATS, INTEGERS, NUMBERS, Arrays, fold, fold_by
from py_ort.ir.graph import attribute

fold_by(np.equal, "Equal", (*NUMBERS, *BOOL))
fold_by(np.greater, "Greater", NUMBERS)
fold_by(np.greater_equal, "GreaterOrEqual", NUMBERS)
fold_by(np.less, "Less", NUMBERS)
fold_by(np.less_equal, "LessOrEqual", NUMBERS)

fold_by(np.logical_and, "And", BOOL)
fold_by(np.logical_or, "Or", BOOL)
fold_by(np.logical_xor, "Xor", BOOL)
fold_by(np.logical_not, "Not", BOOL)

fold_by(np.bitwise_and, "BitwiseAnd", INTEGERS)
fold_by(np.bitwise_or, "BitwiseOr", INTEGERS)
fold_by(np.bitwise_xor, "BitwiseXor", INTEGERS)
fold_by(np.invert, "BitwiseNot", INTEGERS)

fold_by(np.isnan, "IsNaN", FLOATS)


@fold("BitShift", dtypes=tuple(t for t in INTEGERS if not t.is_signed()))
def _shifted(node: ir.Node, inputs: Arrays) -> Any:
    x, by = inputs
    if np.any(by >= 8 * x.dtype.itemsize):
        return None
    return (np.left_shift if attribute(node, "direction") == "LEFT" else np.right_shift)(x, by)


@fold("IsInf", dtypes=FLOATS)
def _is_infinite(node: ir.Node, inputs: Arrays) -> Any:
    x = inputs[0]
    above, below = (attribute(node, f"detect_{name}", 1) != 0 for name in ("positive", "negative"))
    return np.isinf(x) & (((x > 0) & above) | ((x < 0) & below))


@fold("Where", dtypes=ANY, of=1)
def _chosen(node: ir.Node, inputs: Arrays) -> Any:
    return np.where(*inputs)

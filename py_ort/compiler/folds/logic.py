"""Comparisons, truths and bits, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import ANY, BOOL, FLOATS, INTEGERS, NUMBERS, Arrays, fold
from py_ort.ir.graph import attribute

_COMPARISONS: dict[str, Callable[..., Any]] = {
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}
_TRUTHS: dict[str, Callable[..., Any]] = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
_BITS: dict[str, Callable[..., Any]] = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "BitwiseNot": np.invert,
}


@fold("Equal", dtypes=(*NUMBERS, *BOOL))
def _equal(node: ir.Node, inputs: Arrays) -> Any:
    return np.equal(*inputs)


@fold(*_COMPARISONS, dtypes=NUMBERS)
def _compared(node: ir.Node, inputs: Arrays) -> Any:
    return _COMPARISONS[node.op_type](*inputs)


@fold(*_TRUTHS, dtypes=BOOL)
def _combined(node: ir.Node, inputs: Arrays) -> Any:
    return _TRUTHS[node.op_type](*inputs)


@fold("Not", dtypes=BOOL)
def _opposite(node: ir.Node, inputs: Arrays) -> Any:
    return np.logical_not(inputs[0])


@fold(*_BITS, dtypes=INTEGERS)
def _bits(node: ir.Node, inputs: Arrays) -> Any:
    return _BITS[node.op_type](*inputs)


@fold("BitShift", dtypes=tuple(t for t in INTEGERS if not t.is_signed()))
def _shifted(node: ir.Node, inputs: Arrays) -> Any:
    x, by = inputs
    if np.any(by >= 8 * x.dtype.itemsize):
        return None
    return (np.left_shift if attribute(node, "direction") == "LEFT" else np.right_shift)(x, by)


@fold("IsNaN", dtypes=FLOATS)
def _is_nan(node: ir.Node, inputs: Arrays) -> Any:
    return np.isnan(inputs[0])


@fold("IsInf", dtypes=FLOATS)
def _is_infinite(node: ir.Node, inputs: Arrays) -> Any:
    x = inputs[0]
    above, below = (attribute(node, f"detect_{name}", 1) != 0 for name in ("positive", "negative"))
    return np.isinf(x) & (((x > 0) & above) | ((x < 0) & below))


@fold("Where", dtypes=ANY, of=1)
def _chosen(node: ir.Node, inputs: Arrays) -> Any:
    return np.where(*inputs)

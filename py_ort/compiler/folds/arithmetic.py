"""Arithmetic, element by element, with broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import (
    ANY,
    FLOATS,
    INTEGERS,
    NUMBERS,
    Arrays,
    fold,
    fold_by,
    fold_wide,
    has_nan,
    is_float,
    wide,
)
from py_ort.ir.graph import attribute

_UP_TO_32_BITS = tuple(t for t in FLOATS if t != ir.DataType.DOUBLE)

# Integers wrap.
fold_by(np.add, "Add", NUMBERS)
fold_by(np.subtract, "Sub", NUMBERS)
fold_by(np.multiply, "Mul", NUMBERS)
fold_by(np.negative, "Neg", (*FLOATS, *(t for t in INTEGERS if t.is_signed())))
fold_by(np.abs, "Abs", NUMBERS)
fold_by(np.floor, "Floor", FLOATS)
fold_by(np.ceil, "Ceil", FLOATS)
fold_by(np.rint, "Round", FLOATS)

fold_wide(np.sqrt, "Sqrt", FLOATS)
fold_wide(np.reciprocal, "Reciprocal", FLOATS)
# Of float64 kernels differ in more than the last bits.
fold_wide(np.exp, "Exp", _UP_TO_32_BITS)
fold_wide(np.log, "Log", _UP_TO_32_BITS)
fold_wide(np.sin, "Sin", _UP_TO_32_BITS)
fold_wide(np.cos, "Cos", _UP_TO_32_BITS)
fold_wide(np.tanh, "Tanh", _UP_TO_32_BITS)
fold_wide(lambda x: 1 / (1 + np.exp(-x)), "Sigmoid", _UP_TO_32_BITS)


@fold("Div", dtypes=NUMBERS)
def _quotient(node: ir.Node, inputs: Arrays) -> Any:
    """Integers are divided towards zero."""
    a, b = inputs
    if is_float(a):
        return np.divide(a, b)
    if np.any(b == 0) or (a.dtype.kind == "i" and np.any(b == -1) and np.any(a == np.iinfo(a.dtype).min)):
        return None
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)
    return quotient


@fold("Mod", dtypes=NUMBERS)
def _remainder(node: ir.Node, inputs: Arrays) -> Any:
    """With the divisor's sign, or with the dividend's, as C's fmod."""
    a, b = inputs
    as_c = attribute(node, "fmod", 0) == 1
    if is_float(a):
        return np.fmod(wide(a), wide(b)).astype(a.dtype) if as_c else None
    return None if np.any(b == 0) else (np.fmod if as_c else np.mod)(a, b)


@fold("Pow", dtypes=FLOATS)
def _power(node: ir.Node, inputs: Arrays) -> Any:
    base, exponent = inputs
    return np.power(wide(base), exponent.astype(np.float64)).astype(base.dtype)


@fold("Max", "Min", dtypes=NUMBERS)
def _extreme(node: ir.Node, inputs: Arrays) -> Any:
    if has_nan(*inputs):
        return None
    result = inputs[0]
    for item in inputs[1:]:
        result = (np.maximum if node.op_type == "Max" else np.minimum)(result, item)
    return result


@fold("Clip", dtypes=NUMBERS)
def _clip(node: ir.Node, inputs: Arrays) -> Any:
    """With the bounds crossed, the upper one is the result. Some kernels take a missing bound for the largest float."""
    x, low, high = (*inputs, None, None)[:3]
    if has_nan(*(item for item in (x, low, high) if item is not None)) or (is_float(x) and np.any(np.isinf(x))):
        return None
    x = x if low is None else np.maximum(x, low.reshape(()))
    return x if high is None else np.minimum(x, high.reshape(()))


@fold("Sign", dtypes=NUMBERS)
def _sign(node: ir.Node, inputs: Arrays) -> Any:
    return None if has_nan(inputs[0]) else np.sign(inputs[0])


@fold("Relu", dtypes=FLOATS)
def _relu(node: ir.Node, inputs: Arrays) -> Any:
    x = inputs[0]
    return None if has_nan(x) else np.where(x < 0, x.dtype.type(0), x)  # -0 stays -0


@fold("Identity", dtypes=ANY)
def _same(node: ir.Node, inputs: Arrays) -> Any:
    return inputs[0]

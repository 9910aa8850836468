"""Arithmetic, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import ANY, FLOATS, INTEGERS, NUMBERS, Arrays, fold, has_nan, is_float, wide
from py_ort.ir.graph import attribute

_EXACT: dict[str, Callable[..., Any]] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
_ROUNDED: dict[str, Callable[[np.ndarray], Any]] = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.rint}
_ROOTS: dict[str, Callable[[np.ndarray], Any]] = {"Sqrt": np.sqrt, "Reciprocal": np.reciprocal}
_FUNCTIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "Exp": np.exp,
    "Log": np.log,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


@fold(*_EXACT, dtypes=NUMBERS)
def _sum_or_product(node: ir.Node, inputs: Arrays) -> Any:
    """Integers wrap."""
    return _EXACT[node.op_type](*inputs)


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


@fold("Neg", dtypes=(*FLOATS, *(t for t in INTEGERS if t.is_signed())))
def _negative(node: ir.Node, inputs: Arrays) -> Any:
    return np.negative(inputs[0])


@fold("Abs", dtypes=NUMBERS)
def _absolute(node: ir.Node, inputs: Arrays) -> Any:
    return np.abs(inputs[0])


@fold("Sign", dtypes=NUMBERS)
def _sign(node: ir.Node, inputs: Arrays) -> Any:
    return None if has_nan(inputs[0]) else np.sign(inputs[0])


@fold("Relu", dtypes=FLOATS)
def _relu(node: ir.Node, inputs: Arrays) -> Any:
    x = inputs[0]
    return None if has_nan(x) else np.where(x < 0, x.dtype.type(0), x)  # -0 stays -0


@fold(*_ROUNDED, dtypes=FLOATS)
def _rounded(node: ir.Node, inputs: Arrays) -> Any:
    return _ROUNDED[node.op_type](inputs[0])


@fold(*_ROOTS, dtypes=FLOATS)
def _root(node: ir.Node, inputs: Arrays) -> Any:
    return _ROOTS[node.op_type](wide(inputs[0])).astype(inputs[0].dtype)


@fold(*_FUNCTIONS, dtypes=tuple(t for t in FLOATS if t != ir.DataType.DOUBLE))
def _function(node: ir.Node, inputs: Arrays) -> Any:
    """Of float64 kernels differ in more than the last bits."""
    return _FUNCTIONS[node.op_type](wide(inputs[0])).astype(inputs[0].dtype)


@fold("Identity", dtypes=ANY)
def _same(node: ir.Node, inputs: Arrays) -> Any:
    return inputs[0]

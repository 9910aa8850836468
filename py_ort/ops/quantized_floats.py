"""Operators on quantized tensors as operators on floats between DequantizeLinear and QuantizeLinear.

For providers where rounding is a part of what is done to floats (`passes/fuse/round_trips.py`). Scales, zero points and
biases must be constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, attributes_of, dims, input_at, rank
from py_ort.ir.operators import in_floats


class _Steps(NamedTuple):
    """A quantized tensor's scale and zero point: one number each, or lists of one length."""

    scale: np.ndarray
    zero: np.ndarray | None

    def undo(self, build: Builder, integers: ir.Value | None, axis: int | None = None) -> Any:
        """Return the floats that integers stand for; with lists, those of `axis`."""
        return build.op("DequantizeLinear", integers, self.scale, self.zero, axis=axis if self.scale.ndim else None)

    def make(self, build: Builder, floats: ir.Value, dtype: ir.DataType | None) -> Any:
        """Return the integers that floats are rounded to."""
        wanted = None if self.zero is not None or dtype is None else int(dtype)
        return build.op("QuantizeLinear", floats, self.scale, self.zero, output_dtype=wanted)


def _steps(node: ir.Node, index: int) -> _Steps | None:
    """The scale that is input `index`, and the zero point behind it, of a whole tensor."""
    found = _many(node, index)
    return found if found is not None and found.scale.ndim == 0 else None


def _many(node: ir.Node, index: int) -> _Steps | None:
    """The same where there may be several, along one axis."""
    scale, given = array(input_at(node, index)), input_at(node, index + 1)
    zero = array(given)
    if scale is None or scale.dtype != np.float32 or (zero is None and given is not None):
        return None
    if scale.ndim > 1 or (zero is not None and zero.ndim > 1):
        return None
    length = max(scale.size, 1 if zero is None else zero.size)
    shape = () if length == 1 else (length,)
    if any(each is not None and each.size not in (1, length) for each in (scale, zero)):
        return None

    def spread(each: np.ndarray) -> np.ndarray:
        return np.broadcast_to(each.reshape(-1), (length,)).reshape(shape).copy()

    return _Steps(spread(scale), None if zero is None else spread(zero))


def _dtype(value: ir.Value | None) -> ir.DataType | None:
    return None if value is None else value.dtype


@in_floats("QLinearConv", domain="")
def qlinear_conv(node: ir.Node, build: Builder) -> Any:
    """X, W with a scale for each channel, B in steps of the product."""
    x, w, y, bias = _steps(node, 1), _many(node, 4), _steps(node, 6), input_at(node, 8)
    if x is None or w is None or y is None or (bias is not None and bias.const_value is None):
        return None
    operands = [x.undo(build, node.inputs[0]), w.undo(build, node.inputs[3], 0)]
    if bias is not None:
        operands.append(_Steps(x.scale * w.scale, None).undo(build, bias, 0))
    return y.make(build, build.op("Conv", *operands, **attributes_of(node)), _dtype(node.inputs[0]))


@in_floats("QLinearMatMul", domain="")
def qlinear_matmul(node: ir.Node, build: Builder) -> Any:
    """A, B with a scale for each column of a matrix."""
    a, b, y = _steps(node, 1), _many(node, 4), _steps(node, 6)
    if a is None or b is None or y is None or (b.scale.ndim and rank(node.inputs[3]) != 2):
        return None
    product = build.op("MatMul", a.undo(build, node.inputs[0]), b.undo(build, node.inputs[3], 1))
    return y.make(build, product, _dtype(node.inputs[0]))


@in_floats("QGemm")
def qgemm(node: ir.Node, build: Builder) -> Any:
    """A, B with a scale for each column, C in steps of the product; what there are no steps for stays floats."""
    a, b, y = _steps(node, 1), _many(node, 4), _steps(node, 7)
    floats = input_at(node, 7) is None
    if a is None or b is None or (y is None and not floats) or any(attribute(node, t, 0) for t in ("transA", "transB")):
        return None
    c = input_at(node, 6)
    if c is not None and (c.const_value is None or (b.scale.ndim and (dims(c) or [0])[-1] != b.scale.size)):
        return None  # the columns are not C's
    operands = [a.undo(build, node.inputs[0]), b.undo(build, node.inputs[3], 1)]
    if c is not None:
        operands.append(_Steps(a.scale * b.scale, None).undo(build, c, (rank(c) or 1) - 1))
    product = build.op("Gemm", *operands, alpha=attribute(node, "alpha", 1.0), beta=attribute(node, "alpha", 1.0))
    return product if y is None else y.make(build, product, _dtype(node.inputs[0]))


def _between(op_type: str, data: tuple[int, ...], result: int) -> None:
    """Declare an operator that is `op_type` of the data inputs, which their scales and zero points follow."""

    @in_floats(f"QLinear{op_type}")
    def make(node: ir.Node, build: Builder) -> Any:
        given, y = [_steps(node, index + 1) for index in data], _steps(node, result)
        if y is None or any(each is None for each in given) or attribute(node, "channels_last", 0):
            return None
        if attribute(node, "ceil_mode", 0) and attribute(node, "count_include_pad", 0):
            return None  # a mean by itself: its parts say how
        operands = [each.undo(build, node.inputs[i]) for each, i in zip(given, data, strict=True) if each is not None]
        kept = {name: value for name, value in attributes_of(node).items() if name != "channels_last"}
        return y.make(build, build.op(op_type, *operands, **kept), _dtype(node.inputs[0]))


_between("Add", (0, 3), 6)
_between("Mul", (0, 3), 6)
_between("Sigmoid", (0,), 3)
_between("LeakyRelu", (0,), 3)
_between("AveragePool", (0,), 3)
_between("GlobalAveragePool", (0,), 3)


@in_floats("QLinearConcat")
def qlinear_concat(node: ir.Node, build: Builder) -> Any:
    """The result's scale and zero point, then each tensor with its own."""
    places = range(2, len(node.inputs), 3)
    given, y = [_steps(node, index + 1) for index in places], _steps(node, 0)
    if y is None or any(each is None for each in given):
        return None
    parts = [each.undo(build, node.inputs[i]) for each, i in zip(given, places, strict=True) if each is not None]
    return y.make(build, build.op("Concat", *parts, **attributes_of(node)), _dtype(node.inputs[2]))

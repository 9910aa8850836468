"""DequantizeLinear → operator → QuantizeLinear becomes the operator on integers, where the provider has it.

The same operators as onnxruntime takes, so that results are equal to the last unit: a mean of integers is often
exactly between two steps, and which way it goes depends on how it was computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import nodes_of, only_user
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.quantization import (
    BYTES,
    Kinds,
    Quantization,
    computes_on_bytes,
    computes_on_signed_bytes,
    dequantized,
    quantized_by,
)
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import array, attribute, attributes_of, dims, origins, rank, remove, replace_value, scalar
from py_ort.ir.operators import MICROSOFT, op_types, operator
from py_ort.ir.rules import Rules


class Quantized(Pass):
    """Integer products, pools, activations and moves of quantized numbers."""

    after = ("identity",)  # which may stand in between
    before = ("folding",)  # which makes floats of quantized weights

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider runs. Only one that has the whole family gets any of it."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Take each operator between quantized inputs and a quantized output."""
        if not computes_on_bytes(self._target):
            return 0
        bounded = sum(fits_in_integers(node) for node in nodes_of(model, "Relu", "Clip"))
        moves = (*op_types("moves"), *op_types("view"))
        return bounded + sum(self._fuse(node) for node in nodes_of(model, *_rule, *moves))

    def _fuse(self, node: ir.Node) -> bool:
        if len(node.outputs) != 1 or has_epilogue(node):
            return False
        behind = only_user(node.outputs[0])
        result = quantized_by(behind)
        if behind is None or result is None or behind.inputs[0] is not node.outputs[0]:
            return False
        build = Builder(behind, origin=(*origins(node), *origins(behind)))
        made = (_rule.of(node) or _move)(node, result, build)
        if made is None:
            return False
        op_type, domain, inputs, attributes = made
        if self._target.has(domain, op_type) is not True:
            return False
        if computes_on_signed_bytes(self._target) and not _reads_signed(op_type, domain, inputs):
            return False
        value = build.op(op_type, *inputs, domain=domain, **attributes)
        value.type = behind.outputs[0].type
        if value.shape is None:
            value.shape = node.outputs[0].shape
        replace_value(behind.outputs[0], value)
        remove(behind)
        remove(node)
        return True


def _reads_signed(op_type: str, domain: str, inputs: Sequence[ir.Value | None]) -> bool:
    """Return True if all bytes are signed, and weights are constant images' or matrices' without zero points."""
    if any(value is not None and value.dtype == ir.DataType.UINT8 for value in inputs):
        return False
    places = operator(domain, op_type).integer_weights
    if places is None:
        return True
    weights, zeros = (inputs[index] for index in places)
    axes = 4 if op_type == "QLinearConv" else 2
    found = None if zeros is None else array(zeros)
    return (
        weights is not None
        and weights.const_value is not None
        and rank(weights) == axes
        and (found is not None and not found.any())
    )


def fits_in_integers(node: ir.Node, kinds: Kinds = BYTES) -> bool:
    """Remove a Relu or Clip before a quantization to one of these types that saturates at the same bounds."""
    behind = only_user(node.outputs[0])
    result = quantized_by(behind, kinds)
    if result is None or behind is None or behind.inputs[0] is not node.outputs[0] or node.inputs[0] is None:
        return False
    least, most = (0.0, None) if node.op_type == "Relu" else _bounds(node)
    low, high = ((limit - result.zero) * result.step for limit in (result.limits.min, result.limits.max))
    if (least is not None and least > low) or (most is not None and most < high):
        return False
    behind.replace_input_with(0, node.inputs[0])
    remove(node)
    return True


def _bounds(node: ir.Node) -> tuple[float | None, float | None]:
    """A Clip's bounds; a number that is not known bounds everything."""
    found = [None if value is None else scalar(value) for value in (*node.inputs[1:3], None, None)[:2]]
    unknown = [value is not None and number is None for value, number in zip(node.inputs[1:3], found, strict=False)]
    return (math.inf, -math.inf) if any(unknown) else (found[0], found[1])


def _bytes(value: ir.Value | None, *, axis: int | None = None) -> Quantization | None:
    """Return the 8-bit integers that a value was dequantized from, with one scale, or one for each index of `axis`."""
    found = dequantized(value)
    return found if found is not None and found.is_along(axis, rank(value)) else None


def _bias(value: ir.Value | None, x: Quantization, w: Quantization) -> ir.Value | None:
    """Return the int32 constant that a bias was dequantized from, if its scale is the product's."""
    found = dequantized(value, (ir.DataType.INT32,))
    if found is None or found.zeros.any():
        return None
    return found.integers if np.allclose(found.steps, x.step * w.steps, rtol=1e-4, atol=0) else None


_Made = tuple[str, str, "list[ir.Value | None]", "dict[str, Any]"]
_rule = Rules[Callable[[ir.Node, Quantization, Builder], "_Made | None"]]()
"""The operator on integers."""


@_rule("Conv")
def _conv(node: ir.Node, result: Quantization, build: Builder) -> _Made | None:
    x, w = _bytes(node.inputs[0]), _bytes(node.inputs[1], axis=0)
    if x is None or w is None or len(node.inputs) > 3:
        return None
    inputs: list[ir.Value | None] = [*x.parts, *w.parts, result.scale, result.zero_point]
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        bias = _bias(node.inputs[2], x, w)
        if bias is None:
            return None
        inputs.append(bias)
    return "QLinearConv", "", inputs, attributes_of(node)


@_rule("MatMul")
def _matmul(node: ir.Node, result: Quantization, build: Builder) -> _Made | None:
    a, b = _bytes(node.inputs[0]), _bytes(node.inputs[1], axis=1 if rank(node.inputs[1]) == 2 else None)
    if a is None or b is None or len(node.inputs) > 2:
        return None
    return "QLinearMatMul", "", [*a.parts, *b.parts, result.scale, result.zero_point], {}


@_rule("Gemm")
def _gemm(node: ir.Node, result: Quantization, build: Builder) -> _Made | None:
    transposed = bool(attribute(node, "transB", 0))
    a, b = _bytes(node.inputs[0]), _bytes(node.inputs[1], axis=0 if transposed else 1)
    c = node.inputs[2] if len(node.inputs) > 2 else None
    if a is None or b is None or attribute(node, "alpha", 1.0) != 1 or attribute(node, "transA", 0):
        return None
    bias = None if c is None else _bias(c, a, b)
    if c is not None and (bias is None or attribute(node, "beta", 1.0) != 1):
        return None
    weights = list(b.parts)
    if transposed:
        columns = array(b.integers)
        weights[0] = build.op("Transpose", b.integers, perm=[1, 0]) if columns is None else build.constant(columns.T)
    return "QGemm", MICROSOFT, [*a.parts, *weights, bias, result.scale, result.zero_point], {}


@_rule("Add", "Mul", "Sigmoid", "LeakyRelu", "Softmax", "GlobalAveragePool")
def _elementwise(node: ir.Node, result: Quantization, build: Builder) -> _Made | None:
    inputs = [_bytes(value) for value in node.inputs]
    if any(item is None or item.integers.dtype != result.zero_point.dtype for item in inputs):
        return None
    flat = [
        part
        for each in inputs
        if each is not None
        for part in (each.integers, _scalar(each.scale, build), _scalar(each.zero_point, build))
    ]
    attributes = attributes_of(node)
    if node.op_type == "Softmax":
        attributes["opset"] = _SOFTMAX_OF_ONE_AXIS
    if attributes.pop("dilations", None) is not None and set(attribute(node, "dilations")) != {1}:
        return None
    ends = [_scalar(part, build) for part in (result.scale, result.zero_point)]
    return f"QLinear{node.op_type}", MICROSOFT, [*flat, *ends], attributes


#: Softmax of ONNX's opset 13 on is along one axis.
_SOFTMAX_OF_ONE_AXIS = 13


def _scalar(value: ir.Value, build: Builder) -> ir.Value:
    """A scale or zero point [1] as native onnxruntime takes it."""
    contents = array(value) if value.const_value is not None and dims(value) == [1] else None
    return value if contents is None else build.constant(contents.reshape(()))


@_rule("AveragePool")
def _pool(node: ir.Node, result: Quantization, build: Builder) -> _Made | None:
    """Signed bytes that are read once onnxruntime makes unsigned; if one side has others, means go through floats."""
    made = _elementwise(node, result, build)
    if made is None or result.zero_point.dtype == ir.DataType.UINT8:
        return made
    x = made[2][0]
    return made if x is not None and _is_read_once(x) == _is_read_once(result.integers) else None


def _is_read_once(integers: ir.Value) -> bool:
    """Return True if the integers stay in the graph, and one operator reads them or their floats."""
    readers = (use.node for use in integers.uses())
    count = sum(max(1, len(each.outputs[0].uses())) if each.op_type == "DequantizeLinear" else 1 for each in readers)
    return count == 1 and not integers.is_graph_input() and not integers.is_graph_output()


@_rule("Concat")
def _concat(node: ir.Node, result: Quantization, build: Builder) -> _Made | None:
    made = _elementwise(node, result, build)
    if made is None:
        return None
    *flat, scale, zero_point = made[2]
    return "QLinearConcat", MICROSOFT, [scale, zero_point, *flat], made[3]


@_rule("MaxPool", "Resize")
def _move(node: ir.Node, result: Quantization, build: Builder) -> _Made | None:
    """Move or pick integers instead of floats, if scale and zero point are equal before and after."""
    x = _bytes(node.inputs[0])
    if x is None or x.integers.dtype != result.zero_point.dtype:
        return None
    if node.op_type == "Resize" and attribute(node, "mode", "nearest") != "nearest":
        return None
    if not (np.array_equal(x.steps, result.steps) and np.array_equal(x.zeros, result.zeros)):
        return None
    return node.op_type, "", [x.integers, *node.inputs[1:]], attributes_of(node)

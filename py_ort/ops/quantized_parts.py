"""com.microsoft's operators on quantized tensors, in their parts, for providers that have the parts only.

Their rounding is onnxruntime's: where it adds the zero point before it rounds, so do the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, attributes_of, dims, input_at, rank
from py_ort.ir.operators import MICROSOFT, in_parts
from py_ort.ir.spatial import window_size

_QUANTIZED = ("Cast", "Reshape", "Add", "Mul", "Sub", "Div", "Floor", "QuantizeLinear", "DequantizeLinear")
_ONE = np.array(1, np.float32)


def _scalar(build: Builder, value: ir.Value | None) -> Any:
    """A scale or zero point for a whole tensor may come as a list of one."""
    return value if value is None or rank(value) == 0 else build.op("Reshape", value, np.array([], np.int64))


def _float(build: Builder, value: ir.Value | None) -> Any:
    """Return a number as float32; an omitted one is zero."""
    if value is None:
        return build.constant(np.array(0, np.float32))
    return value if value.dtype == ir.DataType.FLOAT else build.op("Cast", value, to=int(ir.DataType.FLOAT))


def _dequantized(node: ir.Node, build: Builder, index: int) -> Any:
    """Data input `index`, which its scale and zero point follow."""
    scale, zero = (_scalar(build, input_at(node, index + k)) for k in (1, 2))
    return build.op("DequantizeLinear", node.inputs[index], scale, zero)


def _quantized(build: Builder, value: ir.Value, scale: Any, zero: Any, dtype: ir.DataType | None) -> Any:
    wanted = None if zero is not None or dtype is None else int(dtype)
    return build.op("QuantizeLinear", value, scale, zero, output_dtype=wanted)


def _rounded(build: Builder, value: ir.Value, dtype: ir.DataType | None) -> Any:
    """Integers of a quantized type, of numbers that have the zero point in them already."""
    assert dtype is not None
    return build.op("QuantizeLinear", value, _ONE, np.zeros((), dtype.numpy()))


_End = Callable[[Builder, ir.Value, Any], Any]


def _between(op_type: str, data: tuple[int, ...], output: int, *plain: int, ended: _End | None = None) -> None:
    """Declare an operator that is another one between dequantizing its data inputs and quantizing the result.

    `ended` makes what is quantized of the result, by the scale.
    """

    @in_parts(f"QLinear{op_type}", op_type, *_QUANTIZED)
    def make(node: ir.Node, build: Builder) -> Any:
        places = data or range(2, len(node.inputs), 3)
        values = [*(node.inputs[i] for i in plain), *(_dequantized(node, build, i) for i in places)]
        result = build.op(op_type, *values, **attributes_of(node))
        scale, zero = (_scalar(build, input_at(node, output + k)) for k in (0, 1))
        result = result if ended is None else ended(build, result, scale)
        first = node.inputs[places[0]]
        return _quantized(build, result, scale, zero, None if first is None else first.dtype)


def _in_whole_steps(build: Builder, result: ir.Value, scale: Any) -> Any:
    """Multiply a softmax by floor(1 / scale) * scale: onnxruntime makes 1 a whole number of steps."""
    known = array(scale)
    if known is None:
        whole = build.op("Floor", build.op("Div", _ONE, scale))
        return build.op("Mul", result, build.op("Mul", whole, scale))
    share = (np.floor(_ONE / known) * known).astype(np.float32)
    return result if share == 1 else build.op("Mul", result, share)


_between("Sigmoid", (0,), 3)
_between("LeakyRelu", (0,), 3)
_between("Softmax", (0,), 3, ended=_in_whole_steps)
_between("Where", (1, 4), 7, 0)
_between("Concat", (), 0)


@in_parts("QLinearAdd", *_QUANTIZED)
def qlinear_add(node: ir.Node, build: Builder) -> Any:
    """The operands in steps of the result, and one number for all three zero points."""
    a, b = node.inputs[0], node.inputs[3]
    scales = [_scalar(build, node.inputs[i]) for i in (1, 4, 6)]
    zeros = [_float(build, _scalar(build, input_at(node, i))) for i in (2, 5, 7)]
    left, right = (build.op("Div", scale, scales[2]) for scale in scales[:2])
    moved = build.op("Add", build.op("Mul", left, zeros[0]), build.op("Mul", right, zeros[1]))
    fixed = build.op("Sub", zeros[2], moved)
    first = build.op("Add", build.op("Mul", _float(build, a), left), fixed)
    return _rounded(build, build.op("Add", first, build.op("Mul", _float(build, b), right)), a.dtype if a else None)


@in_parts("QLinearMul", *_QUANTIZED)
def qlinear_mul(node: ir.Node, build: Builder) -> Any:
    """Integers are multiplied, then brought to the result's steps."""
    a, b = node.inputs[0], node.inputs[3]
    scales = [_scalar(build, node.inputs[i]) for i in (1, 4, 6)]
    zeros = [_float(build, _scalar(build, input_at(node, i))) for i in (2, 5, 7)]
    step = build.op("Div", build.op("Mul", scales[0], scales[1]), scales[2])
    # Products of 8 bits are exact in floats.
    factors = [build.op("Sub", _float(build, x), zero) for x, zero in zip((a, b), zeros[:2], strict=True)]
    value = build.op("Add", build.op("Mul", build.op("Mul", *factors), step), zeros[2])
    return _rounded(build, value, a.dtype if a else None)


def _first_channels(node: ir.Node) -> list[int] | None:
    known = rank(node.inputs[0])
    return None if known is None else [0, known - 1, *range(1, known - 1)]


@in_parts("QLinearAveragePool", "AveragePool", "Pad", "Transpose", *_QUANTIZED)
def qlinear_average_pool(node: ir.Node, build: Builder) -> Any:
    """A mean is often just between two steps: the zero point is added before it is rounded."""
    return _pooled(
        node, build, "AveragePool", lambda mean, scale, zero: build.op("Add", build.op("Div", mean, scale), zero)
    )


@in_parts("QLinearGlobalAveragePool", "GlobalAveragePool", "Transpose", *_QUANTIZED)
def qlinear_global_average_pool(node: ir.Node, build: Builder) -> Any:
    """Here it is added after."""
    return _pooled(node, build, "GlobalAveragePool", None)


def _pooled(node: ir.Node, build: Builder, op_type: str, joined: Any) -> Any:
    last, perm = attribute(node, "channels_last", 0), _first_channels(node)
    if last and perm is None:
        return None
    kept = {name: item for name, item in attributes_of(node).items() if name != "channels_last"}
    x = _dequantized(node, build, 0)
    x = build.op("Transpose", x, perm=perm) if last else x
    x, kept = _in_whole_windows(node, build, x, kept)
    mean = build.op(op_type, x, **kept)
    mean = build.op("Transpose", mean, perm=[0, *range(2, len(perm)), 1]) if last and perm else mean
    scale, zero = (_scalar(build, input_at(node, i)) for i in (3, 4))
    dtype = node.inputs[0].dtype if node.inputs[0] else None
    if joined is None:
        return _quantized(build, mean, scale, zero, dtype)
    return _rounded(build, joined(mean, scale, _float(build, zero)), dtype)


def _in_whole_windows(
    node: ir.Node, build: Builder, x: ir.Value, given: dict[str, Any]
) -> tuple[ir.Value, dict[str, Any]]:
    """Pad so that a last window does not reach behind the padding: onnxruntime divides by all of its places, too."""
    known = (dims(x) or [])[2:]
    kernel = list(attribute(node, "kernel_shape", []))
    counted = attribute(node, "ceil_mode", 0) and attribute(node, "count_include_pad", 0)
    if not counted or len(known) != len(kernel) or not all(isinstance(d, int) for d in known):
        return x, given
    if attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return x, given
    steps = list(attribute(node, "strides", [1] * len(kernel)))
    pads = list(attribute(node, "pads", [0] * 2 * len(kernel)))
    ends = []
    for size, window, step, before, after in zip(
        known, kernel, steps, pads[: len(kernel)], pads[len(kernel) :], strict=True
    ):
        places = window_size(size, window, step, 1, before, after, ceil=True)
        ends.append(max(after, (places - 1) * step + window - size - before))
    x = build.op("Pad", x, [0, 0, *pads[: len(kernel)], 0, 0, *ends])
    return x, {"kernel_shape": kernel, "strides": steps}


_PRODUCT = ("MatMulInteger", *_QUANTIZED)


@in_parts("MatMulIntegerToFloat", *_PRODUCT)
def matmul_integer_to_float(node: ir.Node, build: Builder) -> Any:
    """A, B, their scales, their zero points, a bias."""
    a, b, a_scale, b_scale = node.inputs[:4]
    return _scaled(
        build, _product(build, a, b, input_at(node, 4), input_at(node, 5)), a_scale, b_scale, input_at(node, 6)
    )


@in_parts("DynamicQuantizeMatMul", "DynamicQuantizeLinear", *_PRODUCT)
def dynamic_quantize_matmul(node: ir.Node, build: Builder) -> Any:
    """A, B, B's scale and zero point, a bias; A is quantized by its own range."""
    a, scale, zero = build.op("DynamicQuantizeLinear", node.inputs[0], outputs=3)
    return _scaled(
        build, _product(build, a, node.inputs[1], zero, input_at(node, 3)), scale, node.inputs[2], input_at(node, 4)
    )


@in_parts("QGemm", *_PRODUCT)
def qgemm(node: ir.Node, build: Builder) -> Any:
    """Each operand with scale and zero point, C in int32, and the result's: it is quantized if it has a zero point."""
    if attribute(node, "transA", 0) or attribute(node, "transB", 0):
        return None
    sums = _product(build, node.inputs[0], node.inputs[3], input_at(node, 2), input_at(node, 5))
    c, scale, zero = (input_at(node, i) for i in (6, 7, 8))
    sums = sums if c is None else build.op("Add", sums, c)
    alpha = build.constant(np.array(attribute(node, "alpha", 1.0), np.float32))
    factor = build.op("Mul", alpha, _scalar(build, node.inputs[1]))
    steps = build.op("Mul", factor, node.inputs[4])
    if scale is not None:
        steps = build.op("Div", steps, _scalar(build, scale))
    value = build.op("Mul", _float(build, sums), steps)
    return value if zero is None else _quantized(build, value, _ONE, _scalar(build, zero), zero.dtype)


def _product(build: Builder, a: Any, b: Any, a_zero: ir.Value | None, b_zero: ir.Value | None) -> Any:
    return build.op("MatMulInteger", a, b, _scalar(build, a_zero), b_zero)


def _scaled(build: Builder, sums: ir.Value, a_scale: Any, b_scale: Any, bias: ir.Value | None) -> Any:
    value = build.op("Mul", _float(build, sums), build.op("Mul", _scalar(build, a_scale), b_scale))
    return value if bias is None else build.op("Add", value, bias)


@in_parts("QAttention", "Split", ("com.microsoft", "MultiHeadAttention"), *_PRODUCT)
def qattention(node: ir.Node, build: Builder) -> Any:
    """Queries, keys and values are columns of one product of integers; what follows is done in floats."""
    x, weights, bias, x_scale, scale = node.inputs[:5]
    mask, x_zero, zero, past = (input_at(node, i) for i in (5, 6, 7, 8))
    if past is not None or len(node.outputs) > 1 or attribute(node, "do_rotary", 0):
        return None
    rows = _scaled(build, _product(build, x, weights, x_zero, zero), x_scale, scale, bias)
    query, key, value = build.op("Split", rows, axis=-1, num_outputs=3, outputs=3)
    kept = {name: item for name, item in attributes_of(node).items() if name != "do_rotary"}
    return build.op("MultiHeadAttention", query, key, value, None, mask, domain=MICROSOFT, **kept)


#: The numbers that 4 bits stand for in bitsandbytes' formats.
_FP4 = (0, 0.005208333488553762, 2 / 3, 1, 1 / 3, 0.5, 1 / 6, 0.25)
NF4 = (
    *(-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634),
    *(0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1),
)


@in_parts(
    "MatMulBnb4",
    "BitShift",
    "BitwiseAnd",
    "Cast",
    "Gather",
    "Reshape",
    "Unsqueeze",
    "Mul",
    "MatMul",
    "Transpose",
    "Concat",
    "Slice",
)
def matmul_bnb4(node: ir.Node, build: Builder) -> Any:
    """The weights are looked up, two in a byte, and scaled; then it is a product."""
    a, packed, largest = node.inputs[:3]
    k, n, block = (attribute(node, name) for name in ("K", "N", "block_size"))
    if largest is None:
        return None
    dtype = (largest.dtype or ir.DataType.FLOAT).numpy()
    table = (*_FP4, *(-x for x in _FP4)) if attribute(node, "quant_type") == 0 else NF4
    parts = (
        build.op("BitShift", packed, np.array(4, np.uint8), direction="RIGHT"),
        build.op("BitwiseAnd", packed, np.array(15, np.uint8)),
    )
    columns = [build.op("Unsqueeze", build.op("Cast", part, to=int(ir.DataType.INT32)), [1]) for part in parts]
    values = build.op("Gather", np.array(table, dtype), build.op("Concat", *columns, axis=1), axis=0)
    held, whole = (n * k + 1) // 2 * 2, -(-n * k // block) * block
    if whole > held:  # the last block is not full
        values = build.op("Concat", build.op("Reshape", values, [-1]), np.zeros(whole - held, dtype), axis=0)
    scaled = build.op("Mul", build.op("Reshape", values, [-1, block]), build.op("Unsqueeze", largest, [1]))
    if whole > n * k:
        scaled = build.op("Slice", build.op("Reshape", scaled, [-1]), [0], [n * k], [0])
    weights = build.op("Reshape", scaled, [n, k])
    transposed = build.op("Transpose", weights, perm=[1, 0]) if attribute(node, "transB", 1) else weights
    return build.op("MatMul", a, transposed)

"""The least work of a model: arithmetic of its products, and bytes of its weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from py_ort.compiler.load import check_types, load_model
from py_ort.compiler.passes.clean.canonicalize import Canonicalize
from py_ort.compiler.passes.clean.constants import Constants
from py_ort.compiler.passes.clean.free_dimensions import FreeDimensions
from py_ort.compiler.passes.pass_base import run_passes
from py_ort.ir.graph import input_at
from py_ort.ir.rules import Rules

#: Operators with products in them, and how many multiplications a node has; 0 where sizes are not known.
_multiplications: Rules[Callable[[ir.Node], float]] = Rules(("", "com.microsoft"))
_Shape = Sequence[int]
#: How many multiplications of a type take as long as one of float32, where hardware has instructions for them.
_PER_FLOAT32: Mapping[float, float] = {0.5: 4, 1: 4, 2: 2, 8: 0.5}
#: How many times fewer multiplications Winograd's F(4x4, 3x3) has: 36 for 16 outputs of 9.
_WINOGRAD = 4


@dataclass(frozen=True)
class Work:
    """Least work of one run.

    Attributes:
        operations: Multiplications and additions of products and convolutions, in float32's: of 16 bits two count as
            one, of 8 bits four do, and convolutions are by Winograd's transforms where these suit. Other operators,
            bodies of loops and nodes with sizes unknown before a run are not counted.
        weight_bytes: Bytes of constants in the file.
    """

    operations: float
    weight_bytes: int


def work_of(model: bytes, shapes: Mapping[str, Sequence[int]]) -> Work:
    """Count the work of a model for inputs of these shapes.

    Args:
        model: An ONNX file's contents.
        shapes: By the inputs' names.

    Raises:
        InvalidGraph, InvalidProtobuf: It cannot be read.
    """
    loaded = load_model(model).model
    wanted = {name: list(shape) for name, shape in shapes.items()}
    whole = [""] * len(loaded.graph.outputs)  # their types are not checked
    run_passes(loaded, [Constants(), FreeDimensions({}, {}, wanted), Canonicalize(check_types, whole)])
    operations = 2 * sum(_of_node(node) for node in loaded.graph)
    weights = sum(tensor.nbytes for value in loaded.graph.initializers.values() if (tensor := value.const_value))
    return Work(operations, weights)


def _of_node(node: ir.Node) -> float:
    rule = _multiplications.of(node)
    return rule(node) if rule else 0.0


def _shape(value: ir.Value | None) -> list[int] | None:
    """Return a value's sizes; None where one is not known."""
    shape = value.shape if value is not None else None
    if shape is None:
        return None
    sizes = [size for size in shape if isinstance(size, int)]
    return sizes if len(sizes) == len(shape) else None


def _in_float32(multiplications: float, operand: ir.Value | None) -> float:
    dtype = operand.dtype if operand is not None else None
    return multiplications / (_PER_FLOAT32.get(dtype.itemsize, 1.0) if dtype is not None else 1.0)


def _times(*shapes: _Shape | None) -> float:
    """Return the product of all sizes; 0 where some are not known."""
    found = 1.0
    for shape in shapes:
        if shape is None:
            return 0.0
        found *= math.prod(shape)
    return found


@_multiplications("MatMul", "MatMulInteger", "FusedMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul")
def _matmul(node: ir.Node) -> float:
    a, product = _shape(input_at(node, 0)), _shape(node.outputs[0])
    if not a:
        return 0.0
    transposed = node.attributes.get_int("transA", 0) and len(a) > 1
    # The activations of DynamicQuantizeMatMul become integers.
    return _in_float32(_times(product) * (a[-2] if transposed else a[-1]), input_at(node, 1))


@_multiplications("QLinearMatMul")
def _qlinear_matmul(node: ir.Node) -> float:
    a, product = _shape(input_at(node, 0)), _shape(node.outputs[0])
    return _in_float32(_times(product) * a[-1], input_at(node, 0)) if a else 0.0


@_multiplications("Gemm", "QGemm")
def _gemm(node: ir.Node) -> float:
    a, product = _shape(input_at(node, 0)), _shape(node.outputs[0])
    if not a:
        return 0.0
    return _in_float32(_times(product) * a[0 if node.attributes.get_int("transA", 0) else 1], input_at(node, 0))


@_multiplications("MatMulNBits", "MatMulBnb4")
def _blocks(node: ir.Node) -> float:
    # Weights of few bits are multiplied in the activations' type, or in one that is quicker.
    return _times(_shape(node.outputs[0])) * node.attributes.get_int("K", 0)


@_multiplications("Conv", "ConvInteger", "FusedConv", "NhwcFusedConv")
def _conv(node: ir.Node) -> float:
    kernel, y = _shape(input_at(node, 1)), _shape(node.outputs[0])
    if not kernel:
        return 0.0
    return _in_float32(_times(y, kernel[1:]), input_at(node, 1)) / (_WINOGRAD if _suits_winograd(node, kernel) else 1)


def _suits_winograd(node: ir.Node, kernel: _Shape) -> bool:
    """Return True if transforms may save multiplications: for windows of 3x3 with stride 1."""
    one_by_one = all(set(node.attributes.get_ints(name, [1])) == {1} for name in ("strides", "dilations"))
    return len(kernel) == 4 and list(kernel[2:]) == [3, 3] and kernel[1] > 1 and one_by_one


@_multiplications("QLinearConv")
def _qlinear_conv(node: ir.Node) -> float:
    kernel, y = _shape(input_at(node, 3)), _shape(node.outputs[0])
    return _in_float32(_times(y, kernel[1:]), input_at(node, 3)) if kernel else 0.0


@_multiplications("ConvTranspose")
def _conv_transpose(node: ir.Node) -> float:
    x, kernel = _shape(input_at(node, 0)), _shape(input_at(node, 1))
    return _in_float32(_times(x, kernel[1:]), input_at(node, 1)) if kernel else 0.0


@_multiplications("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM")
def _recurrent(node: ir.Node) -> float:
    x, weights, hidden = (_shape(input_at(node, index)) for index in range(3))
    if not x:
        return 0.0
    # Of each step of each text, whichever of the two axes comes first: every weight once.
    steps = float(math.prod(x[:2]))
    return steps * (_in_float32(_times(weights), input_at(node, 1)) + _in_float32(_times(hidden), input_at(node, 2)))

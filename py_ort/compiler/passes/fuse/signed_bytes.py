"""Replaces uint8 in quantized tensors by int8, with zero points less by 128, so that the floats are the same.

For providers whose operators on quantized tensors are of int8 (feature "signed").
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import nodes_of
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.quantization import Quantization, computes_on_signed_bytes, is_move, quantized_by
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, set_attributes

_UNSIGNED = (ir.DataType.UINT8,)


class SignedBytes(Pass):
    """Tensors that the graph quantizes and dequantizes, and constants."""

    before = ("quantized", "folding")

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider runs."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Take each QuantizeLinear whose integers are only moved and dequantized, and dequantized constants."""
        if not computes_on_signed_bytes(self._target):
            return 0
        made = sum(_take_made(node) for node in nodes_of(model, "QuantizeLinear"))
        return made + sum(_take_constant(node) for node in nodes_of(model, "DequantizeLinear"))


def _take_made(node: ir.Node) -> bool:
    made = quantized_by(node, _UNSIGNED)
    found = None if made is None else _readers(node)
    if made is None or found is None:
        return False
    moved, readers = found
    for each in (node, *readers):
        _set_zero_point(each)
    for value in moved:
        value.type = ir.TensorType(ir.DataType.INT8)
    return True


def _readers(maker: ir.Node) -> tuple[list[ir.Value], list[ir.Node]] | None:
    """Return the values with the same integers, moved, and the nodes that dequantize them; None if others read them."""
    moved, readers = [maker.outputs[0]], list[ir.Node]()
    for value in moved:
        if value.is_graph_output():
            return None
        for node, index in value.uses():
            if index != 0 or node.graph is not maker.graph:
                return None
            if node.op_type == "DequantizeLinear" and Quantization.of(node, _UNSIGNED) is not None:
                readers.append(node)
            elif is_move(node):
                moved.extend(output for output in node.outputs if output not in moved)
            else:
                return None
    return moved, list(dict.fromkeys(readers))


def _take_constant(node: ir.Node) -> bool:
    contents = array(node.inputs[0])
    if contents is None or Quantization.of(node, _UNSIGNED) is None:
        return False
    _set_zero_point(node)
    node.replace_input_with(0, Builder(node).constant(_signed(contents)))
    return True


def _set_zero_point(node: ir.Node) -> None:
    """Make the zero point int8; without one it was 0."""
    scale = array(node.inputs[1])
    given = array(node.inputs[2]) if len(node.inputs) > 2 else None
    assert scale is not None
    zeros = np.zeros(scale.shape, np.uint8) if given is None else given
    node.resize_inputs(3)
    node.replace_input_with(2, Builder(node).constant(_signed(zeros)))
    set_attributes(node, output_dtype=None)


def _signed(values: np.ndarray) -> np.ndarray:
    return np.asarray(values ^ np.uint8(0x80)).view(np.int8)

"""Weights of convolutions in TFLite's order, so that no graph transposes any."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.ir.graph import array, attribute
from py_ort.ir.operators import NHWC
from py_ort.providers.packing import Packed, Packing
from py_ort.schema.dialect import IHWO, OHWI, OUT_CHANNELS, PACKED_N, WEIGHT_LAYOUT


class Filters(Packing):
    """See docs/internals.md, section 3."""

    def convolution(self, node: ir.Node, shape: tuple[int, ...]) -> Packed:
        """[M, kh, kw, C / group]; [1, kh, kw, M] for depthwise; transposed [M / group, kh, kw, C]."""
        first, second, kh, kw = shape
        group = attribute(node, "group", 1)
        if node.op_type == "ConvTranspose":
            attributes = {WEIGHT_LAYOUT: OHWI, OUT_CHANNELS: second * group}
            return Packed("transposed_ohwi", lambda w: w.transpose(1, 2, 3, 0), (second, kh, kw, first), attributes)
        if second == 1 and first == group and group > 1:
            attributes = {WEIGHT_LAYOUT: IHWO, OUT_CHANNELS: first}
            return Packed("ihwo", lambda w: w.transpose(1, 2, 3, 0), (1, kh, kw, first), attributes)
        attributes = {WEIGHT_LAYOUT: OHWI, OUT_CHANNELS: first}
        return Packed("ohwi", lambda w: w.transpose(0, 2, 3, 1), (first, kh, kw, second), attributes)

    def integers(self, node: ir.Node, shape: tuple[int, ...]) -> Packed | None:
        """For int8 without zero points, between tensors with one scale each: images like floats'; [N, K]."""
        if node.op_type not in ("QLinearConv", "QLinearMatMul", "QGemm") or not _is_signed(node):
            return None
        if node.domain == NHWC:
            return self.convolution(node, shape)
        if node.op_type == "QLinearConv" or len(shape) != _MATRIX:
            return None
        rows, columns = shape
        return Packed("columns", np.transpose, (columns, rows), {PACKED_N: columns})


_MATRIX = 2
_WEIGHTS, _ZERO = 3, 5


def _is_signed(node: ir.Node) -> bool:
    """Return True if the weights are int8 without zero points, and each of the other tensors has one scale."""
    weights, zeros = node.inputs[_WEIGHTS], array(node.inputs[_ZERO])
    if weights is None or weights.dtype != ir.DataType.INT8 or zeros is None or zeros.any():
        return False
    scales = [array(node.inputs[index]) for index in ((1, 6) if node.op_type == "QLinearMatMul" else (1,))]
    return all(scale is not None and scale.size == 1 for scale in scales)

"""Weights in the shaders' order: plain matrices, output channels last."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.providers.packing import Packed, Packing, hwio, scaled_matrix
from py_ort.schema.dialect import HWIO, OUT_CHANNELS, WEIGHT_LAYOUT


class Matrices(Packing):
    """See docs/internals.md, section 3."""

    def convolution(self, node: ir.Node, shape: tuple[int, ...]) -> Packed:
        """HWIO; for a ConvTranspose [C, M / group, kh, kw] → [kh, kw, C, M / group]."""
        if node.op_type == "Conv":
            return hwio(shape)
        inputs, each, kh, kw = shape
        attributes = {WEIGHT_LAYOUT: HWIO, OUT_CHANNELS: None}
        return Packed("transposed_hwio", lambda w: w.transpose(2, 3, 0, 1), (kh, kw, inputs, each), attributes)

    def product(self, node: ir.Node, right: ir.Value, shape: tuple[int, ...]) -> Packed | None:
        """Not transposed, and multiplied by alpha."""
        transposed, alpha, matrix = scaled_matrix(node)
        if right.dtype != ir.DataType.FLOAT or (not transposed and alpha == 1.0):
            return None
        return Packed(f"matrix/{transposed}/{alpha}", matrix, shape[::-1] if transposed else shape)

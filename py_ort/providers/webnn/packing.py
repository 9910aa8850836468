"""Weights of convolutions as TFLite reads them, so that no graph transposes any."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.graph import attribute
from py_ort.providers.packing import Packed, Packing


class Filters(Packing):
    """See docs/internals.md, section 3."""

    def convolution(self, node: ir.Node, shape: tuple[int, ...]) -> Packed:
        """[M, kh, kw, C / group]; [1, kh, kw, M] where each channel is a group; transposed [M / group, kh, kw, C]."""
        first, second, kh, kw = shape
        group = attribute(node, "group", 1)
        if node.op_type == "ConvTranspose":
            attributes = {"weight_layout": "OHWI", "out_channels": second * group}
            return Packed("transposed_ohwi", lambda w: w.transpose(1, 2, 3, 0), (second, kh, kw, first), attributes)
        if second == 1 and first == group and group > 1:
            attributes = {"weight_layout": "IHWO", "out_channels": first}
            return Packed("ihwo", lambda w: w.transpose(1, 2, 3, 0), (1, kh, kw, first), attributes)
        attributes = {"weight_layout": "OHWI", "out_channels": first}
        return Packed("ohwi", lambda w: w.transpose(0, 2, 3, 1), (first, kh, kw, second), attributes)

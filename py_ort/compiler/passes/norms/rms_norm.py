"""RMSNormalization from its parts: x / sqrt(mean(x²) + ε) * scale, over the last axes."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import nodes_of
from py_ort.compiler.passes.norms.layer_norm import fuse_last_axes
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target


class RmsNorm(Pass):
    """Found from its division, or from the product with the reciprocal."""

    def __init__(self, target: Target) -> None:
        """`target` tells whether the first provider has RMSNormalization."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Try each Div and Mul."""
        if not self._target.has("", "RMSNormalization"):
            return 0
        return sum(fuse_last_axes(node, "RMSNormalization", centered=False) for node in nodes_of(model, "Div", "Mul"))

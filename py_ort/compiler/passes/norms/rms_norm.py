"""RMSNormalization from its parts: x / sqrt(mean(x²) + ε) * scale, over the last axes."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.norms.layer_norm import fuse_last_axes
from py_ort.compiler.passes.rewrite import rewrite, runs


@rewrite("Div", "Mul", needs=runs("RMSNormalization"))
def rms_norm(node: ir.Node) -> bool:
    """Find it by its division, or by the product with the reciprocal."""
    return fuse_last_axes(node, "RMSNormalization", centered=False)

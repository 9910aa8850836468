"""BatchNormalization, Mul and Add of constants behind a Conv → into its weights and bias, and nothing else."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse import batch_normalization, conv_affine
from py_ort.compiler.passes.match import made_by, nodes_of, only_for
from py_ort.compiler.passes.pass_base import Pass

_NUMPY_BROADCASTING = 7  # the first opset whose Mul and Add have it


class BehindConvolutions(Pass):
    """As `batch_normalization` and `conv_affine`, in whatever opset the model is."""

    def requires(self, model: ir.Model) -> None:
        """Any opset."""

    def call(self, model: ir.Model) -> int:
        """Fuse the nodes after each convolution."""
        if model.opset_imports.get("", 0) < _NUMPY_BROADCASTING:
            return 0
        for node in nodes_of(model, "BatchNormalization"):
            x = node.inputs[0]
            if x is not None and made_by(x, "Conv") and only_for(x, node):
                batch_normalization.take_apart(node)
        return sum(conv_affine.after(node) for node in nodes_of(model, "Mul", "Add"))

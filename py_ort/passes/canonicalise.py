"""Every node becomes its newest opset's form, functions of the model are inlined, types and sizes are inferred."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.canonicalise import Check, canonicalise
from py_ort.passes.contracts import check_canonical
from py_ort.passes.pass_base import Pass


class Canonicalise(Pass):
    """What all passes behind it work on."""

    after = ("constants", "free_dimensions")  # rewrites look at constants, and inference starts from the inputs
    settles = False  # nodes are checked in the form in which the model has them

    def __init__(self, check: Check | None = None) -> None:
        """`check` is called for each node, in its old form, with its opset."""
        self._check = check

    def requires(self, model: ir.Model) -> None:
        """Any opset."""

    def call(self, model: ir.Model) -> int:
        """Rewrite; see `py_ort.ops.canonicalise`."""
        return canonicalise(model, self._check)

    def ensures(self, model: ir.Model) -> None:
        """This is what the others require."""
        check_canonical(model)

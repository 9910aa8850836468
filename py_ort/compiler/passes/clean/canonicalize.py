"""Every node becomes its newest opset's form, functions of the model are inlined, types and sizes are inferred."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from py_ort.compiler.canonical.canonicalize import Check, canonicalize
from py_ort.compiler.canonical.index_width import settle_outputs
from py_ort.compiler.passes.contracts import check_canonical
from py_ort.compiler.passes.pass_base import Pass, count_nodes


class Canonicalize(Pass):
    """The canonical form, which all later passes work on."""

    after = ("constants", "free_dimensions")  # rewrites look at constants, and inference starts from the inputs
    settles = False  # nodes are checked in the form in which the model has them

    def __init__(self, check: Check | None = None, output_types: Sequence[str] = ()) -> None:
        """Set the check of nodes, and the declared types.

        Args:
            check: Called for each node, in its old form, with its opset.
            output_types: The declared types of the model's outputs, as in `NodeArg.type`; "": any.
        """
        self._check, self._output_types = check, output_types

    def requires(self, model: ir.Model) -> None:
        """Any opset."""

    def call(self, model: ir.Model) -> int:
        """Rewrite, see `py_ort.compiler.canonical.canonicalize`; nodes put before others that stay count as well."""
        nodes = count_nodes(model)
        count = canonicalize(model, self._check)
        if self._output_types:
            settle_outputs(model.graph, self._output_types)
        return count or abs(count_nodes(model) - nodes)

    def ensures(self, model: ir.Model) -> None:
        """Operators are in their newest forms, as all other passes require."""
        check_canonical(model)

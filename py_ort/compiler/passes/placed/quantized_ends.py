"""A product → FakeQuantize, once or in two steps: its epilogue, whatever stands in that already.

Runs after placement: only kernels with the feature "steps" have epilogues of any length.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from py_ort.compiler.passes.contracts import check_placed
from py_ort.compiler.passes.match import only_for
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import all_nodes, origins, remove, replace_value, set_origins
from py_ort.ir.operators import INTERNAL


class QuantizedEnds(Pass):
    """Rounding where the product is stored."""

    after = ("activation",)
    before = ("elementwise_chains",)

    def __init__(self, provider_of: Callable[[ir.Node], str], takes: Callable[[ir.Node], bool]) -> None:
        """Say where nodes run.

        Args:
            provider_of: The provider of a node.
            takes: Whether the kernel of a product has epilogues of any length.
        """
        self._provider_of, self._takes = provider_of, takes

    def requires(self, model: ir.Model) -> None:
        """Nodes are placed."""
        super().requires(model)
        check_placed(model, self._provider_of)

    def call(self, model: ir.Model) -> int:
        """Take each rounding of a product that nothing else reads, the first ones first."""
        return sum(self._fuse(node) for node in list(all_nodes(model.graph)))

    def _fuse(self, node: ir.Node) -> bool:
        row = function_of(node)
        if row is None or (node.domain, node.op_type) != (INTERNAL, "FakeQuantize"):
            return False
        x = node.inputs[0]
        host = None if x is None else x.producer()
        if x is None or host is None or host.graph is not node.graph or not only_for(x, node):
            return False
        if x.dtype != ir.DataType.FLOAT or self._provider_of(host) != self._provider_of(node) or not self._takes(host):
            return False
        Epilogue.of(host).then(row.name, numbers_of(row, node)).write(host)
        set_origins(host, (*origins(host), *origins(node)))
        replace_value(node.outputs[0], x)
        remove(node)
        return True

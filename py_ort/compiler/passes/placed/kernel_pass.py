"""The base of passes that run on placed nodes, because kernels differ from provider to provider."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from py_ort.compiler.passes.contracts import check_placed
from py_ort.compiler.passes.pass_base import Pass

Takes = Callable[[ir.Node], bool]
"""Return True if a node is one for the pass where it is placed: its kernel has a feature, or it is on a device."""


class KernelPass(Pass):
    """A pass over placed nodes, for kernels with features beyond their operator."""

    def __init__(self, takes: Takes) -> None:
        """`takes`: of a node."""
        self._takes = takes

    def requires(self, model: ir.Model) -> None:
        """Nodes are placed."""
        super().requires(model)
        check_placed(model, self._takes)

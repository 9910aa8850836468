"""ElementwiseChain, which only `passes/elementwise_chains.py` makes: its operators are in the attribute `program`."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.declaration import INTERNAL, Operator


def _infer(node: ir.Node) -> None:
    """The pass that makes it says what it gives."""


OPERATORS = [Operator("ElementwiseChain", domain=INTERNAL, infer=_infer)]

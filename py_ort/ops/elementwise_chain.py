"""ElementwiseChain: its operators are in attribute `program`; `passes/placed/elementwise_chains.py` makes it."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.operators import INTERNAL, Operator


def _infer(node: ir.Node) -> None:
    """The pass that makes it says what it gives."""


OPERATORS = [Operator("ElementwiseChain", domain=INTERNAL, infer=_infer)]

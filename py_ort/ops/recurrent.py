"""RNN, GRU, LSTM."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.builder import Builder, attribute, set_attributes
from py_ort.ops.declaration import Operator, lowering

OPERATORS = [Operator(name, tolerance="loose") for name in ("RNN", "GRU", "LSTM")]


@lowering("RNN", "GRU", "LSTM")
def recurrent(node: ir.Node, build: Builder) -> None:
    """The first opset had a flag for its first output, and a default with a spelling mistake."""
    set_attributes(node, output_sequence=None)
    directions = 2 if attribute(node, "direction") == "bidirectional" else 1
    activations = list(attribute(node, "activations") or [])
    if node.op_type == "RNN" and len(activations) > directions:  # the default is that of two directions
        set_attributes(node, activations=activations[:directions])
    if attribute(node, "direction") == "foward":
        set_attributes(node, direction="forward")

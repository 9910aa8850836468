"""Operators that generate text."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.declaration import MICROSOFT, Operator
from py_ort.ops.infer import like


def _infer_scores(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[1])


OPERATORS = [Operator("NGramRepeatBlock", domain=MICROSOFT, tolerance="exact", infer=_infer_scores)]

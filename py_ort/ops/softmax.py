"""Softmax, LogSoftmax and Hardmax."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, rank, set_attributes
from py_ort.ir.operators import Operator, lowering
from py_ort.ops.reshaping import flattened

OPERATORS = [
    Operator("Softmax", layout="axis"),
    Operator("LogSoftmax", layout="axis"),
    Operator("Hardmax", layout="axis"),
]


@lowering("Softmax", "LogSoftmax", "Hardmax", before=13)
def over_flattened(node: ir.Node, build: Builder) -> Any:
    """The old operator worked on the matrix that is left when all axes from `axis` on are one."""
    axis = attribute(node, "axis", 1)
    known = rank(node.inputs[0])
    if known is not None and axis in (known - 1, -1):
        set_attributes(node, axis=-1)
        return None
    x = node.inputs[0]
    assert x is not None
    flat = flattened(x, axis, build)
    result = build.op(node.op_type, flat, axis=-1)
    return build.op("Reshape", result, build.op("Shape", x))

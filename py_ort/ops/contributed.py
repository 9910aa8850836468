"""Operators of com.microsoft that ONNX took over, or that are another one by a different name."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import Builder, attribute, attributes_of
from py_ort.ops.declaration import MICROSOFT, Operator, lowering

_TAKEN_OVER = ("GatherND", "Pad", "Range", "Trilu")

OPERATORS = [
    Operator(name, domain=MICROSOFT) for name in (*_TAKEN_OVER, "ExpandDims", "GridSample", "TransposeMatMul", "Unique")
]


@lowering(*_TAKEN_OVER, domain=MICROSOFT)
def taken_over(node: ir.Node, build: Builder) -> Any:
    """ONNX's mean the same."""
    return build.op(node.op_type, *node.inputs, **attributes_of(node))


@lowering("ExpandDims", domain=MICROSOFT)
def expand_dims(node: ir.Node, build: Builder) -> Any:
    """Unsqueeze at one axis, which comes as a number of 32 bits."""
    axis = build.op("Cast", node.inputs[1], to=int(ir.DataType.INT64))
    return build.op("Unsqueeze", node.inputs[0], build.op("Reshape", axis, np.array([1], np.int64)))


@lowering("GridSample", domain=MICROSOFT)
def grid_sample(node: ir.Node, build: Builder) -> Any:
    """Modes had the names that they have for images."""
    mode = attribute(node, "mode", "bilinear")
    given = {**attributes_of(node), "mode": {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)}
    return build.op("GridSample", *node.inputs, **given)


@lowering("TransposeMatMul", domain=MICROSOFT)
def transpose_matmul(node: ir.Node, build: Builder) -> Any:
    """FusedMatMul's first name."""
    return build.op("FusedMatMul", *node.inputs, domain=MICROSOFT, **attributes_of(node))


@lowering("Unique", domain=MICROSOFT)
def unique(node: ir.Node, build: Builder) -> Any:
    """In order of appearance, and without the places of the first ones."""
    y, _, inverse, counts = build.op("Unique", node.inputs[0], outputs=4, sorted=0)
    return (y, inverse, counts)[: len(node.outputs)]

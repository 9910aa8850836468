"""Operators that pick elements by index: Gather, Scatter and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute
from py_ort.ir.operators import ML, Operator, lowering

OPERATORS = [
    Operator("Gather", layout="gather", moves=True, indices=(1,)),
    Operator("GatherElements", moves=True, indices=(1,)),
    Operator("GatherND", moves=True, indices=(1,)),
    Operator("ScatterElements", indices=(1,)),
    Operator("ScatterND", indices=(1,)),
    Operator("TensorScatter", indices=(2,)),
    Operator("Scatter"),
    Operator("ArrayFeatureExtractor", ML),
]


@lowering("Scatter", replaces=True)
def scatter(node: ir.Node, build: Builder) -> Any:
    """ScatterElements' first name."""
    return build.op("ScatterElements", *node.inputs, axis=attribute(node, "axis", 0))


@lowering("Compress")
def known_condition(node: ir.Node, build: Builder) -> Any:
    """With a constant condition the size of the result is known: a Gather."""
    condition, axis = array(node.inputs[1]), attribute(node, "axis")
    if condition is None:
        return None
    x = node.inputs[0] if axis is not None else build.op("Reshape", node.inputs[0], [-1])
    return build.op("Gather", x, np.flatnonzero(condition).astype(np.int64), axis=axis or 0)

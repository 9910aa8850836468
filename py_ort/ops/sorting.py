"""Operators that sort and select."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, set_attributes
from py_ort.ir.operators import Operator, lowering

OPERATORS = [Operator("TopK", host=(1,))]


@lowering("TopK", before=10)
def k_attribute(node: ir.Node, build: Builder) -> None:
    """K was an attribute."""
    k = attribute(node, "k")
    set_attributes(node, k=None)
    node.resize_inputs(2)
    node.replace_input_with(1, build.constant(np.array([k], np.int64)))

"""Reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, rank, set_attributes
from py_ort.ir.operators import Operator, lowering

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

OPERATORS = [
    *(Operator(f"Reduce{name}", host=(1,), layout="reduce", in_chains=name != "LogSumExp") for name in _REDUCTIONS),
    Operator("ArgMax", layout="reduce_one"),
    Operator("ArgMin", layout="reduce_one"),
    Operator("CumSum", host=(1,), layout="axis_input"),
    Operator("CumProd", host=(1,), layout="axis_input"),
]


@lowering(*(f"Reduce{name}" for name in _REDUCTIONS if name != "Sum"), before=18)
@lowering("ReduceSum", before=13)
def axes_attribute(node: ir.Node, build: Builder) -> None:
    """Axes were an attribute."""
    axes = attribute(node, "axes")
    set_attributes(node, axes=None)
    if axes:
        node.resize_inputs(2)
        node.replace_input_with(1, build.constant(np.array(list(axes), np.int64)))


@lowering(*(f"Reduce{name}" for name in _REDUCTIONS))
def constant_axes(node: ir.Node, build: Builder) -> Any:
    """No axes means all of them, or, when asked for, none."""
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    empty = axes is None or (axes.const_value is not None and axes.const_value.size == 0)
    if not empty:
        return None
    if attribute(node, "noop_with_empty_axes", 0):
        if node.op_type in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"):
            return build.op("Identity", node.inputs[0])
        return None
    known = rank(node.inputs[0])
    if known is not None:
        node.resize_inputs(2)
        node.replace_input_with(1, build.constant(np.arange(known, dtype=np.int64)))
    return None

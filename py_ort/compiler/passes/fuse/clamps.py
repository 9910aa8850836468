"""Operators that keep numbers between two bounds: Relu, Clip, Max and Min with a number, and several in a row.

What becomes of a NaN is the fused kernel's affair, as it is behind a Relu.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from py_ort.ir.epilogue import Epilogue, Step
from py_ort.ir.graph import rank, scalar

#: Operators that `clamped` recognizes.
CLAMPS = ("Relu", "Clip", "Max", "Min")
#: Clip's default bounds, which replace infinities.
_LARGEST = {ir.DataType.FLOAT: 3.4028234663852886e38, ir.DataType.FLOAT16: 65504.0}
_OPERANDS = 2

Bounds = tuple[float, float]


def clamped(node: ir.Node) -> tuple[ir.Value, Bounds] | None:
    """Return the operand of an operator that clamps, and the constant bounds, the lower one first."""
    x, found = node.inputs[0], [-math.inf, math.inf]
    if node.op_type == "Relu":
        found[0] = 0.0
    elif node.op_type == "Clip":
        largest = _LARGEST.get(node.outputs[0].dtype or ir.DataType.UNDEFINED, math.inf)
        bounds = (*node.inputs[1:3], None, None)[:2]
        found = [
            number if value is None else _number(value)
            for value, number in zip(bounds, (-largest, largest), strict=True)
        ]
    elif len(node.inputs) == _OPERANDS:
        at = 1 if math.isnan(_number(node.inputs[0])) else 0
        x, bound = node.inputs[1 - at], _number(node.inputs[at])
        wide = (rank(node.inputs[at]) or 0) > (rank(x) or 0)
        found[0 if node.op_type == "Max" else 1] = math.nan if wide or math.isinf(bound) else bound
    else:
        return None
    if x is None or any(map(math.isnan, found)):
        return None
    low, high = found
    return x, (min(low, high), high)


def _number(value: ir.Value | None) -> float:
    """Return the number of a constant of one element; NaN for any other value."""
    found = scalar(value)
    return math.nan if found is None else float(found)


def clamping(epilogue: Epilogue, bounds: Bounds) -> Epilogue:
    """Return it with bounds behind it, which become one with those that it ends with."""
    *others, last = epilogue.steps or (None,)
    before = None if last is None else clamp_of(last)
    if before is None:
        return epilogue.then(*as_function(bounds))
    low, high = (max(bounds[0], min(bounds[1], bound)) for bound in before)
    return Epilogue(tuple(others)).then(*as_function((low, high)))


def clamp_of(step: Step) -> Bounds | None:
    """Return between which numbers a step keeps its results, if that is all it does."""
    if step.function == "Relu":
        return 0.0, math.inf
    if step.function == "Clip":
        low, high = step.numbers
        return low, high
    return None


def as_function(bounds: Bounds) -> tuple[str, list[float]]:
    """Name and parameters."""
    return ("Relu", []) if bounds == (0.0, math.inf) else ("Clip", list(bounds))

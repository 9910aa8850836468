"""Finds HardSigmoid, HardSwish and Swish in their parts, however these are multiplied and added.

k Clip(a x + b, lo, hi), where k lo = 0 and k hi = 1     → HardSigmoid(alpha = k a, beta = k b)
x times that, where alpha = 1/6 and beta = 0.5           → HardSwish(x)
x Sigmoid(a x)                                           → Swish(x)
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.compiler.passes.fuse.polynomials import Polynomial, before, behind, is_near, polynomial
from py_ort.compiler.passes.match import drop, made_by
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, origins, replace_value, required, scalar

_NUMBER, _X, _F, _XF = (), (0,), (1,), (0, 1)
_SWISH = {_X: 1 / 6, _NUMBER: 0.5}
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


def _bounds(node: ir.Node) -> tuple[ir.Value, float, float] | None:
    """Return the clipped value and its bounds: of a Clip, or a Min of Max or Relu."""
    if node.op_type == "Clip":
        low, high = (scalar(v) for v in node.inputs[1:3]) if len(node.inputs) > 2 else (None, None)
        return None if low is None or high is None or node.inputs[0] is None else (node.inputs[0], low, high)
    for at in (0, 1) if len(node.inputs) == 2 else ():
        high, inner = scalar(node.inputs[1 - at]), made_by(node.inputs[at], "Max", "Relu")
        if high is None or inner is None:
            continue
        if inner.op_type == "Relu":
            return required(inner.inputs[0]), 0.0, high
        for side in (0, 1) if len(inner.inputs) == 2 else ():
            low = scalar(inner.inputs[1 - side])
            if low is not None:
                return required(inner.inputs[side]), low, high
    return None


@rewrite("Clip", "Min")
def hard_swish(node: ir.Node) -> bool:
    """Find a HardSigmoid or HardSwish by its bounds."""
    found = _bounds(node)
    if found is None or node.outputs[0].dtype not in _FLOATS:
        return False
    inside, low, high = found
    lines = [(x, line) for x in behind(inside) if (line := _line(polynomial(inside, [x]))) is not None]
    tops = [node, *before(node.outputs[0])] if lines else []
    for x, line in lines:
        for top in tops:
            made = polynomial(top.outputs[0], [x, node.outputs[0]]) or {}
            k = next(iter(made.values()), 0.0)
            if top is node or len(made) != 1 or abs(k * low) > 1e-4 or abs(k * high - 1) > 1e-4:
                continue
            scaled = {product: k * factor for product, factor in line.items()}
            if set(made) == {_XF} and is_near(scaled, _SWISH, 1e-3):
                return _replace(top, "HardSwish", x, node)
    for x, line in reversed(lines):
        for top in tops:
            made = {_F: 1.0} if top is node else polynomial(top.outputs[0], [x, node.outputs[0]]) or {}
            k = made.get(_F, 0.0)
            if set(made) != {_F} or abs(k * low) > 1e-4 or abs(k * high - 1) > 1e-4:
                continue
            if top is node and x is inside:  # a Clip and nothing else
                continue
            return _replace(top, "HardSigmoid", x, node, alpha=k * line[_X], beta=k * line.get(_NUMBER, 0.0))
    return False


def _line(found: Polynomial | None) -> Polynomial | None:
    """a x + b."""
    return found if found is not None and _X in found and set(found) <= {_X, _NUMBER} else None


@hard_swish.also("Sigmoid", "HardSigmoid")
def _product(node: ir.Node) -> bool:
    for x in behind(node.inputs[0]):
        line = _line(polynomial(node.inputs[0], [x]))
        if line is None:
            continue
        for top in before(node.outputs[0]):
            if not is_near(polynomial(top.outputs[0], [x, node.outputs[0]]), {_XF: 1.0}, 1e-6):
                continue
            if node.op_type == "Sigmoid" and set(line) == {_X}:
                return _replace(top, "Swish", x, node, alpha=line[_X])
            if node.op_type == "HardSigmoid":
                alpha, beta = attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5)
                whole = {_X: alpha * line[_X], _NUMBER: beta + alpha * line.get(_NUMBER, 0.0)}
                if is_near(whole, _SWISH, 1e-3):
                    return _replace(top, "HardSwish", x, node)
    return False


def _replace(top: ir.Node, op_type: str, x: ir.Value, inner: ir.Node, **attributes: Any) -> bool:
    """Replace `top` by one node, and remove nodes that are then unused."""
    if top.graph is not inner.graph or top.outputs[0].dtype not in _FLOATS:
        return False
    build = Builder(top, origin=(*origins(inner), *origins(top)))
    replace_value(top.outputs[0], build.op(op_type, x, **attributes))
    drop(top.outputs[0])
    return True

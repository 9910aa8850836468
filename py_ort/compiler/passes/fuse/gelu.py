"""Gelu from its parts, in whatever order they are multiplied and added.

x / 2 (1 + erf(x / √2))                            → Gelu
x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³)))         → Gelu by tanh, and so is
x sigmoid(√(8/π) (x + 0.044715 x³))
"""

from __future__ import annotations

import math

import onnx_ir as ir

from py_ort.compiler.passes.fuse.polynomials import Polynomial, before, behind, is_near, polynomial
from py_ort.compiler.passes.match import drop
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import origins, replace_value

_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_X, _XXX, _XF = (0,), (0, 0, 0), (0, 1)
#: The formulas above, by their inner function: `approximate`, and what the function is taken of.
_ARGUMENTS: dict[str, tuple[str, Polynomial]] = {
    "Erf": ("none", {_X: math.sqrt(0.5)}),
    "Tanh": ("tanh", {_X: _ROOT, _XXX: _ROOT * _CUBIC}),
    "Sigmoid": ("tanh", {_X: 2 * _ROOT, _XXX: 2 * _ROOT * _CUBIC}),
}
#: How far factors may be off: those of float16 are products of numbers that are rounded to that.
_TOLERANCE, _TOLERANCE_OF_HALVES = 1e-4, 2e-3


def _argument(node: ir.Node) -> tuple[ir.Value, float] | None:
    """The value whose Gelu it may be, and the sign: erf and tanh are odd."""
    wanted = _ARGUMENTS[node.op_type][1]
    for x in behind(node.inputs[0]):
        found = polynomial(node.inputs[0], [x])
        tolerance = _TOLERANCE_OF_HALVES if x.dtype == ir.DataType.FLOAT16 else _TOLERANCE
        for sign in (1.0, -1.0):
            if is_near(found, {product: sign * factor for product, factor in wanted.items()}, tolerance):
                return x, sign
    return None


@rewrite(*_ARGUMENTS)
def gelu(node: ir.Node) -> bool:
    """Find a Gelu by its inner function."""
    argument = _argument(node)
    if argument is None or (node.op_type == "Sigmoid" and argument[1] < 0):
        return False
    x, sign = argument
    wanted: Polynomial = {_XF: 1.0} if node.op_type == "Sigmoid" else {_X: 0.5, _XF: 0.5 * sign}
    for top in before(node.outputs[0]):
        if top.graph is not node.graph or not is_near(polynomial(top.outputs[0], [x, node.outputs[0]]), wanted, 1e-5):
            continue
        build = Builder(top, origin=(*origins(node), *origins(top)))
        replace_value(top.outputs[0], build.op("Gelu", x, approximate=_ARGUMENTS[node.op_type][0]))
        drop(top.outputs[0])
        return True
    return False

"""QLinearConv, QLinearAdd and their kin become operators on floats, between DequantizeLinear and QuantizeLinear.

For providers without operators between quantized tensors, as `RoundTrips`, which then takes the roundings into the
products: models that were quantized operator by operator run as those with QuantizeLinear and DequantizeLinear do, in a
fifth of the time. Weights are floats then, and sums have their last bits: what is small stays integers, and exact.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.quantization import computes_on_signed_bytes, rounds_floats
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import all_nodes, dims
from py_ort.ir.operators import float_form, operator

#: Multiplications of a model for one image, or one row: fewer take some milliseconds at most.
_WORTH = 1 << 22


class QuantizedOperators(Pass):
    """The forms that are declared by `@in_floats` in `py_ort.ops`."""

    before = ("functions", "round_trips")  # the first of which takes some of them apart otherwise

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider runs."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Fuse each operator, except one that is alone in its graph."""
        if not (rounds_floats(self._target) or computes_on_signed_bytes(self._target)):
            return 0
        nodes = [node for node in all_nodes(model.graph) if float_form(node.domain, node.op_type) is not None]
        if sum(map(_multiplications, nodes)) < _WORTH:
            return 0
        return sum(take(node) for node in nodes)


def _multiplications(node: ir.Node) -> float:
    """Return the number of multiplications of integers; a batch of open size counts as one."""
    places = operator(node.domain, node.op_type).integer_weights
    if places is None:
        return 0
    weights, result = dims(node.inputs[places[0]]), dims(node.outputs[0])
    if weights is None or not result:
        return math.inf
    depth = weights[1:] if node.op_type == "QLinearConv" else weights[-2:-1]
    sizes = [*depth, *(size for i, size in enumerate(result) if i or isinstance(size, int))]
    return math.prod(size if isinstance(size, int) else math.inf for size in sizes)


def take(node: ir.Node) -> bool:
    """Put an operator on floats in the place of one on integers that is not alone; say whether it has one."""
    form = float_form(node.domain, node.op_type)
    if form is None or _is_alone(node):
        return False
    build = Builder(node)
    made = form(node, build)
    if made is None:
        return False
    build.finish(made)
    return True


def _is_alone(node: ir.Node) -> bool:
    made = any(value is not None and value.producer() is not None for value in node.inputs)
    return not made and not node.outputs[0].uses()

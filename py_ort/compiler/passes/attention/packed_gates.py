"""act(x A) * (x B) → one product with A and B side by side, whose halves one elementwise kernel reads as columns.

Only where that kernel reads columns of wider tensors.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.attention.packed_projections import first_of, positions_of, projection, side_by_side
from py_ort.compiler.passes.match import drop, made_by, nodes_of, only_for, same_dims
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, origins, replace_value
from py_ort.ir.operators import INTERNAL
from py_ort.schema.scalar_functions import FUNCTIONS

_ACTIVATIONS = tuple(row.name for row in FUNCTIONS.values() if row.ends)
_MOST = 1 << 24  # elements of each: larger weights stay in their file


class PackedGates(Pass):
    """Gated linear units, as language models have them between attentions."""

    after = ("linear",)  # products with their biases
    before = ("activation",)  # which would take the activation into the product

    def __init__(self, target: Target) -> None:
        """`target` tells whether the first provider's operator reads columns of wider tensors."""
        self._wanted = target.reads_columns(INTERNAL, "ElementwiseChain")

    def call(self, model: ir.Model) -> int:
        """Take each Mul of two products, one behind an activation."""
        found = list(nodes_of(model, "Mul")) if self._wanted else []
        positions = positions_of(found)
        return sum(_pack(node, positions) for node in found)


def _pack(node: ir.Node, positions: dict[ir.Node, int]) -> bool:
    for at in (0, 1):
        activated, plain = node.inputs[at], node.inputs[1 - at]
        act = made_by(activated, *_ACTIVATIONS)
        if act is None or activated is None or not only_for(activated, node):
            continue
        gate, up = projection(act.inputs[0], act), projection(plain, node)
        if gate is None or up is None or gate is up or gate.inputs[0] is not up.inputs[0]:
            continue
        if not same_dims(gate.outputs[0], up.outputs[0]) or not _small(gate) or not _small(up):
            continue
        products = [gate, up]
        packed = side_by_side(products, first_of(products, positions))
        made = None if packed is None else packed.producer()
        if packed is None or made is None:
            continue
        build = Builder(act, origin=origins(made))
        width = array(gate.inputs[1]).shape[1]  # type: ignore[union-attr]
        halves = build.op("Split", packed, [width, width], axis=-1, outputs=2)
        for product, half in zip(products, halves, strict=True):
            half.type, half.shape = product.outputs[0].type, product.outputs[0].shape
            replace_value(product.outputs[0], half)
            drop(product.outputs[0])
        return True
    return False


def _small(product: ir.Node) -> bool:
    weights = product.inputs[1]
    return weights is not None and weights.const_value is not None and weights.const_value.size <= _MOST

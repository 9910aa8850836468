"""act(x A) * (x B) → one product with A and B side by side.

One elementwise kernel reads its halves as columns, where that kernel reads columns of wider tensors. With weights of
few bits the product's end multiplies them.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.side_by_side import block_projection, first_of, projection, side_by_side
from py_ort.compiler.passes.match import drop, made_by, only_for, same_dims
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.compiler.target import Target
from py_ort.ir.block_products import OP_TYPE, block_product, is_plain, width_of
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import array, origins, remove, replace_value
from py_ort.ir.operators import INTERNAL, MICROSOFT
from py_ort.schema.dialect import ELEMENTWISE_CHAIN, GATE
from py_ort.schema.scalar_functions import FUNCTIONS

_ACTIVATIONS = tuple(row.name for row in FUNCTIONS.values() if row.ends)
_MOST = 1 << 24  # elements of each: larger weights stay in their file


@rewrite(
    "Mul",
    after=("linear", "dequantized_weights"),  # products with their biases
    before=("activation",),  # which would take the activation into the product
)
def packed_gates(node: ir.Node, target: Target) -> bool:
    """Take each Mul of two products, one behind an activation: gated linear units."""
    return any(
        (target.reads_columns(INTERNAL, ELEMENTWISE_CHAIN) and _pack(node, at))
        or (target.launches and target.offers("gate", OP_TYPE, MICROSOFT) and _pack_blocks(node, at, target))
        for at in (0, 1)
    )


def _pack(node: ir.Node, at: int) -> bool:
    """Let the activation, at input `at`, and the Mul read halves of one product."""
    activated, plain = node.inputs[at], node.inputs[1 - at]
    act = made_by(activated, *_ACTIVATIONS)
    if act is None or activated is None or not only_for(activated, node):
        return False
    gate, up = projection(act.inputs[0], act), projection(plain, node)
    if gate is None or up is None or gate is up or gate.inputs[0] is not up.inputs[0]:
        return False
    if not same_dims(gate.outputs[0], up.outputs[0]) or not _small(gate) or not _small(up):
        return False
    products = [gate, up]
    packed = side_by_side(products, first_of(products))
    made, weights = None if packed is None else packed.producer(), array(gate.inputs[1])
    if packed is None or made is None or weights is None:
        return False
    width = weights.shape[1]
    halves = Builder(act, origin=origins(made)).op("Split", packed, [width, width], axis=-1, outputs=2)
    for product, half in zip(products, halves, strict=True):
        half.type, half.shape = product.outputs[0].type, product.outputs[0].shape
        replace_value(product.outputs[0], half)
        drop(product.outputs[0])
    return True


def _small(product: ir.Node) -> bool:
    weights = product.inputs[1]
    return weights is not None and weights.const_value is not None and weights.const_value.size <= _MOST


def _pack_blocks(node: ir.Node, at: int, target: Target) -> bool:
    """Let one product of few bits do all: its kernel reads weights once, and has little else to do."""
    up, found = block_projection(node.inputs[1 - at], node), _activated(node.inputs[at], node)
    if up is None or found is None:
        return False
    gate, program, inner = found
    if gate is up or not is_plain(gate) or not (target.runs_first(gate) and target.runs_first(up)):
        return False
    packed = side_by_side([gate, up], node, **{GATE: program}) if width_of(gate) == width_of(up) else None
    if packed is None:
        return False
    replace_value(node.outputs[0], packed)
    for each in (node, *inner, gate, up):
        remove(each)
    return True


def _activated(value: ir.Value | None, reader: ir.Node) -> tuple[ir.Node, str, list[ir.Node]] | None:
    """For f(product), read by `reader` alone: the product, f as a program, and the nodes of f."""
    node = None if value is None else value.producer()
    if value is None or node is None or not only_for(value, reader):
        return None
    row = function_of(node)
    if row is not None and row.ends and len(node.inputs) == 1:
        inner, source, numbers, name = [node], node.inputs[0], numbers_of(row, node), row.name
    elif (by := _swish(node)) is not None:
        inner, source, numbers, name = [node, by[0]], by[1], [1.0], "Swish"
    else:
        return None
    product = block_product(source)
    if product is None or source is None or source.is_graph_output():
        return None
    if any(use.node not in inner for use in source.uses()):
        return None
    return product, Epilogue().then(name, numbers).program, inner


def _swish(node: ir.Node) -> tuple[ir.Node, ir.Value] | None:
    """Return the Sigmoid and x of x * sigmoid(x)."""
    if node.domain != "" or node.op_type != "Mul":
        return None
    for at in (0, 1):
        x, sigmoid = node.inputs[1 - at], made_by(node.inputs[at], "Sigmoid")
        if x is not None and sigmoid is not None and sigmoid.inputs[0] is x and only_for(sigmoid.outputs[0], node):
            return sigmoid, x
    return None

"""Products of one operand with weights of few bits → one product with the weights side by side.

Queries, keys and values that GroupQueryAttention reads; and act(x A) * (x B), whose halves the product's end
multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_for
from py_ort.compiler.passes.rewrite import launches, rewrite
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.compiler.target import Target
from py_ort.ir.block_products import (
    BIAS,
    GROUPS,
    OP_TYPE,
    SCALES,
    WEIGHTS,
    ZEROS,
    block_product,
    is_plain,
    width_of,
)
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import array, attribute, attributes_of, input_at, origins, remove, replace_value
from py_ort.ir.operators import MICROSOFT

_MOST = 1 << 25  # bytes of each one's weights: larger ones stay in their file
_QKV = 3


def _takes(node: ir.Node | None, target: Target) -> bool:
    return node is not None and is_plain(node) and target.runs_first(node)


@rewrite("GroupQueryAttention", domain=MICROSOFT, needs=launches, after=("dequantized_weights",))
def packed_blocks(node: ir.Node, target: Target) -> bool:
    """Take each attention of groups, then each product of two products."""
    values = node.inputs[:_QKV]
    products = [block_product(value) for value in values]
    if not all(_takes(product, target) for product in products):
        return False
    if not all(v is not None and only_for(v, node) for v in values):
        return False
    if len(set(values)) < _QKV:
        return False
    packed = blocks_side_by_side([p for p in products if p is not None], node)
    if packed is None:
        return False
    node.replace_input_with(0, packed)
    for i in (1, 2):
        node.replace_input_with(i, None)
    for product in products:
        remove(product)  # type: ignore[arg-type]
    return True


@packed_blocks.also("Mul")
def _gate(node: ir.Node, target: Target) -> bool:
    if not target.offers("gate", OP_TYPE, MICROSOFT):
        return False
    for at in (0, 1):
        up, activated = block_product(node.inputs[1 - at]), node.inputs[at]
        found = _activated(activated, node)
        if up is None or found is None or activated is None:
            continue
        gate, program, inner = found
        plain = node.inputs[1 - at]
        if gate is up or plain is None or not only_for(plain, node):
            continue
        if not (_takes(gate, target) and _takes(up, target)):
            continue
        if width_of(gate) != width_of(up):
            continue
        packed = blocks_side_by_side([gate, up], node, gate=program)
        if packed is None:
            continue
        replace_value(node.outputs[0], packed)
        for each in (node, *inner, gate, up):
            remove(each)
        return True
    return False


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
    """Of x * sigmoid(x): the Sigmoid, and x."""
    if node.domain != "" or node.op_type != "Mul":
        return None
    for at in (0, 1):
        x, sigmoid = node.inputs[1 - at], made_by(node.inputs[at], "Sigmoid")
        if x is not None and sigmoid is not None and sigmoid.inputs[0] is x and only_for(sigmoid.outputs[0], node):
            return sigmoid, x
    return None


def blocks_side_by_side(products: Sequence[ir.Node], anchor: ir.Node, **more: str) -> ir.Value | None:
    """Make one product before `anchor`; return its result, or None where they differ in more than their columns."""
    first = products[0]
    kept = [{k: v for k, v in attributes_of(product).items() if k != "N"} for product in products]
    if any(product.inputs[0] is not first.inputs[0] or product.graph is not anchor.graph for product in products):
        return None
    if any(each != kept[0] for each in kept):
        return None
    columns = [int(attribute(product, "N")) for product in products]
    inputs: list[np.ndarray | None] = []
    for index in (WEIGHTS, SCALES, ZEROS, GROUPS, BIAS):
        values = [input_at(product, index) for product in products]
        if all(value is None for value in values):
            inputs.append(None)
            continue
        joined = _joined(values, columns)
        if joined is None:
            return None
        inputs.append(joined)
    build = Builder(anchor, origin=[name for product in products for name in (*origins(product), *origins(anchor))])
    names = [value.name for value in first.inputs[1:] if value is not None]
    constants = [None if part is None else build.constant(part, names[0]) for part in inputs]
    while constants[-1] is None:
        constants.pop()
    attributes = {**kept[0], **more, "N": sum(columns)}
    made: ir.Value = build.op(OP_TYPE, first.inputs[0], *constants, domain=MICROSOFT, **attributes)
    return made


def _joined(values: Sequence[ir.Value | None], columns: Sequence[int]) -> np.ndarray | None:
    """What each column has of several constants, one behind the other, [columns, …]."""
    if any(value is None or value.const_value is None or value.const_value.nbytes > _MOST for value in values):
        return None
    arrays = [array(value) for value in values]
    rows = [part.reshape(n, -1) for part, n in zip(arrays, columns, strict=True) if part is not None]
    if len({(part.dtype, part.shape[1]) for part in rows}) != 1:
        return None
    joined = np.concatenate(rows)
    shape = arrays[0].shape[1:] if arrays[0] is not None and arrays[0].ndim == 3 else None
    return joined.reshape(len(joined), *shape) if shape else joined.reshape(-1)

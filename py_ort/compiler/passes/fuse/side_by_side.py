"""Products of one operand by several constant weights: one product, with the weights side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_for
from py_ort.ir.block_products import (
    BIAS,
    GROUPS,
    OP_TYPE,
    SCALES,
    WEIGHTS,
    ZEROS,
    block_product,
    is_block_product,
    is_plain,
)
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import array, attribute, attributes_of, dims, input_at, origins
from py_ort.ir.operators import MICROSOFT

_MOST = 1 << 25  # bytes of a product's weights of few bits; larger weights stay in their file


def projection(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    """Return the product by constant weights that makes a value, for `reader` alone; or None."""
    product = made_by(value, "MatMul")
    if product is None or not _is_for(product, reader) or has_epilogue(product):
        return None
    weights, bias = array(product.inputs[1]), input_at(product, 2)
    if weights is None or weights.ndim != 2 or (bias is not None and bias.const_value is None):
        return None
    return product


def block_projection(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    """Return the product by constant weights of few bits that makes a value, for `reader` alone; or None."""
    product = block_product(value)
    return product if product is not None and is_plain(product) and _is_for(product, reader) else None


def _is_for(product: ir.Node, reader: ir.Node) -> bool:
    """Return True if `reader` is the only node that reads the product's output, and reads it once."""
    value = product.outputs[0]
    return only_for(value, reader) and sum(v is value for v in reader.inputs) == 1


def first_of(products: Sequence[ir.Node]) -> ir.Node:
    """Return the product that comes first in the graph."""
    graph = products[0].graph
    assert graph is not None
    return next(node for node in graph if node in products)


def side_by_side(products: Sequence[ir.Node], anchor: ir.Node, **more: str) -> ir.Value | None:
    """Compute several products of one operand as one, inserted before `anchor`; the given products are unused then.

    Args:
        products: All as `projection`, or all as `block_projection` finds them.
        anchor: The node after the new product.
        more: Further attributes of the new product, if its weights have few bits.

    Returns:
        The new product's output: the given products' outputs side by side. None if the products differ in more than
        their columns.
    """
    if any(product.inputs[0] is not products[0].inputs[0] or product.graph is not anchor.graph for product in products):
        return None
    return _blocks(products, anchor, more) if is_block_product(products[0]) else _matrices(products, anchor)


def _matrices(products: Sequence[ir.Node], anchor: ir.Node) -> ir.Value | None:
    weights = [found for product in products if (found := array(product.inputs[1])) is not None]
    if len({each.dtype for each in weights}) != 1:
        return None
    widths = [each.shape[1] for each in weights]
    build = Builder(anchor, origin=[name for product in products for name in origins(product)])
    first, (name, *_) = products[0], _names(products[0])
    joined = build.constant(np.concatenate(weights, axis=1), name)
    packed: ir.Value = build.op("MatMul", first.inputs[0], joined, _bias(build, products, widths))
    packed.type = first.outputs[0].type
    packed.shape = ir.Shape([*(dims(first.outputs[0]) or [])[:-1], sum(widths)])
    return packed


def _bias(build: Builder, products: Sequence[ir.Node], widths: Sequence[int]) -> ir.Value | None:
    """Return the biases in a row, with zeros for products without one; None if none has one."""
    biases = [array(input_at(product, 2)) for product in products]
    given = next((b for b in biases if b is not None), None)
    if given is None:
        return None
    parts = [np.zeros(n, given.dtype) if b is None else b.reshape(-1) for b, n in zip(biases, widths, strict=True)]
    return build.constant(np.concatenate(parts))


def _names(product: ir.Node) -> list[str | None]:
    """Return the names of a product's constants, the weights first."""
    return [value.name for value in product.inputs[1:] if value is not None]


def _blocks(products: Sequence[ir.Node], anchor: ir.Node, more: Mapping[str, str]) -> ir.Value | None:
    kept = [{k: v for k, v in attributes_of(product).items() if k != "N"} for product in products]
    if any(each != kept[0] for each in kept):
        return None
    columns = [int(attribute(product, "N")) for product in products]
    inputs: list[np.ndarray | None] = []
    for index in (WEIGHTS, SCALES, ZEROS, GROUPS, BIAS):
        values = [input_at(product, index) for product in products]
        joined = _joined(values, columns)
        if joined is None and any(value is not None for value in values):
            return None
        inputs.append(joined)
    build = Builder(anchor, origin=[name for product in products for name in (*origins(product), *origins(anchor))])
    name, *_ = _names(products[0])
    constants = [None if part is None else build.constant(part, name) for part in inputs]
    attributes = {**kept[0], **more, "N": sum(columns)}
    made: ir.Value = build.op(OP_TYPE, products[0].inputs[0], *constants, domain=MICROSOFT, **attributes)
    return made


def _joined(values: Sequence[ir.Value | None], columns: Sequence[int]) -> np.ndarray | None:
    """Return several constants by column, concatenated: [columns, …]; None if one of them is missing."""
    if any(value is None or value.const_value is None or value.const_value.nbytes > _MOST for value in values):
        return None
    arrays = [array(value) for value in values]
    rows = [part.reshape(n, -1) for part, n in zip(arrays, columns, strict=True) if part is not None]
    if len({(part.dtype, part.shape[1]) for part in rows}) != 1:
        return None
    joined = np.concatenate(rows)
    shape = arrays[0].shape[1:] if arrays[0] is not None and arrays[0].ndim == 3 else None
    return joined.reshape(len(joined), *shape) if shape else joined.reshape(-1)

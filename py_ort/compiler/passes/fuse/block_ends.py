"""Nodes around products with weights of few bits become part of the products.

A normalization (of a sum, too) whose result such products alone read: each normalizes the rows that it reads anyway.
A residual that is added: the product adds it where it writes.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.absorb import absorb_with, summands
from py_ort.compiler.passes.match import same_dims
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.block_products import OP_TYPE, is_block_product, is_plain
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, input_at, origins, rank, remove, replace_value
from py_ort.ir.operators import MICROSOFT
from py_ort.schema.dialect import GATE, NBITS_NORM, NBITS_RESIDUAL, NORM_EPSILON

_SKIP = "SkipSimplifiedLayerNormalization"
_SUM = 3  # output of _SKIP
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


@rewrite(
    *("SimplifiedLayerNormalization", "RMSNormalization", _SKIP),
    domain=None,
    after=("rms_norm", "skip_norm", "packed_gates"),
)
def block_ends(node: ir.Node, target: Target) -> bool:
    """Take each normalization, then each sum: a decoder's block in few launches."""
    if not target.offers("norm", OP_TYPE, MICROSOFT):
        return False
    skips = node.op_type == _SKIP
    x, normed, scale = node.inputs[0], node.outputs[0], input_at(node, 2 if skips else 1)
    readers = [use.node for use in normed.uses()]
    if x is None or x.dtype not in _FLOATS or scale is None or scale.dtype != x.dtype or rank(scale) != 1:
        return False
    if attribute(node, "axis", -1) not in (-1, (rank(x) or 0) - 1) or not _alone(node, skips):
        return False
    if not readers or not all(_takes(reader, normed, scale, target) for reader in readers):
        return False
    if skips and not _sums(node):
        return False
    epsilon = attribute(node, "epsilon", 1e-12 if skips else 1e-5)
    source = _written_sum(node) if skips else x
    for reader in readers:
        build = Builder(reader, origin=(*origins(node), *origins(reader)))
        inputs = [source, *reader.inputs[1:], *[None] * (NBITS_NORM - len(reader.inputs)), scale]
        more = {**attributes_of(reader), NORM_EPSILON: float(epsilon)}
        replace_value(reader.outputs[0], build.op(OP_TYPE, *inputs, domain=MICROSOFT, **more))
        remove(reader)
    remove(node)
    return True


def _takes(reader: ir.Node, normed: ir.Value, scale: ir.Value, target: Target) -> bool:
    """True if a reader is such a product, of rows as long as the scale."""
    if not is_block_product(reader) or NORM_EPSILON in reader.attributes or len(reader.inputs) > NBITS_NORM:
        return False
    if reader.inputs[0] is not normed or sum(v is normed for v in reader.inputs) > 1:
        return False
    return dims(scale) == [attribute(reader, "K")] and target.runs_first(reader)


def _sums(node: ir.Node) -> bool:
    """True if the sum is of two tensors of one shape, without a bias."""
    x, skip = node.inputs[:2]
    return (
        x is not None and skip is not None and same_dims(x, skip) and (len(node.inputs) <= 3 or node.inputs[3] is None)
    )


def _written_sum(node: ir.Node) -> ir.Value:
    x, skip = node.inputs[:2]
    total: ir.Value = Builder(node).op("Add", x, skip)
    if len(node.outputs) > _SUM:
        replace_value(node.outputs[_SUM], total)
    return total


@block_ends.also("Add")
def _add(node: ir.Node, target: Target) -> bool:
    if not target.offers("residual", OP_TYPE, MICROSOFT):
        return False
    for product, value, residual in summands(node):
        if not is_block_product(product) or not same_dims(value, residual) or residual.const_value is not None:
            continue
        if value.dtype in _FLOATS and _ends(product, target):
            absorb_with(product, node, NBITS_RESIDUAL, residual)
            return True
    return False


def _ends(product: ir.Node, target: Target) -> bool:
    normed = NORM_EPSILON in product.attributes and len(product.inputs) <= NBITS_RESIDUAL
    return (is_plain(product) or normed) and GATE not in product.attributes and target.runs_first(product)


def _alone(node: ir.Node, skips: bool) -> bool:
    """Return True if only the normalized rows, and the sum, are read."""
    others = [output for i, output in enumerate(node.outputs) if i > 0 and not (skips and i == _SUM)]
    return not node.outputs[0].is_graph_output() and not any(o.uses() or o.is_graph_output() for o in others)

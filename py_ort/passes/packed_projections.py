"""Queries, keys and values projected from one tensor by their own weights → one product, which Attention cuts up."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import Builder, array, attribute, dims, origins, rank, remove, set_attributes, set_origins
from py_ort.passes.match import made_by, nodes_of, only_for
from py_ort.passes.pass_base import Pass


class PackedProjections(Pass):
    """Two or three products of the same left operand become one."""

    after = ("attention", "linear")  # products that an Attention reads, with their biases

    def call(self, model: ir.Model) -> int:
        """Take each Attention over [batch, positions, heads * size]."""
        return sum(_pack(node) for node in nodes_of(model, "Attention"))


def _projection(node: ir.Node, index: int) -> ir.Node | None:
    """The product by constant weights that makes input `index`, and nothing else."""
    value = node.inputs[index]
    product = made_by(value, "MatMul")
    if value is None or product is None or not only_for(value, node) or product.graph is not node.graph:
        return None
    if sum(v is value for v in node.inputs) > 1 or attribute(product, "activation"):
        return None
    weights, bias = array(product.inputs[1]), product.inputs[2] if len(product.inputs) > 2 else None
    if weights is None or weights.ndim != 2 or (bias is not None and bias.const_value is None):
        return None
    return product


def _pack(node: ir.Node) -> bool:
    if len(node.inputs) < 3 or any(rank(v) != 3 for v in node.inputs[:3]):
        return False
    found = {i: product for i in range(3) if (product := _projection(node, i)) is not None}
    left = [product.inputs[0] for product in found.values()]
    source = max(left, key=left.count, default=None)
    chosen = [i for i, product in found.items() if product.inputs[0] is source]
    heads = attribute(node, "q_num_heads"), *[attribute(node, "kv_num_heads")] * 2
    known: list[list[Any]] = [dims(v) or [None] for v in node.inputs[:3]]
    widths = [sizes[-1] for sizes in known]
    if len(chosen) < 2 or source is None or not all(heads) or not all(isinstance(w, int) for w in widths):
        return False
    weights = [array(found[i].inputs[1]) for i in chosen]
    if len({w.dtype for w in weights if w is not None}) != 1:
        return False
    offsets = list(attribute(node, "offsets", (0, 0, 0)))
    sizes = list(attribute(node, "head_sizes", (widths[0] // heads[0], widths[2] // heads[2])))
    start = 0
    for i in chosen:
        offsets[i] += start
        start += int(widths[i])
    products = [found[i] for i in chosen]
    build = Builder(node, origin=[name for product in products for name in origins(product)])
    packed = build.op(
        "MatMul",
        source,
        build.constant(np.concatenate(weights, axis=1), products[0].inputs[1].name),  # type: ignore[arg-type,union-attr]
        _bias(build, products, [int(widths[i]) for i in chosen]),
    )
    packed.shape = ir.Shape([*(dims(node.inputs[chosen[0]]) or [])[:-1], start])
    for i in chosen:
        node.replace_input_with(i, packed)
    set_attributes(node, offsets=offsets, head_sizes=sizes)
    set_origins(node, (*build.origin, *origins(node)))
    for product in products:
        remove(product)
    return True


def _bias(build: Builder, products: list[ir.Node], widths: list[int]) -> ir.Value | None:
    """The vectors that are added, one behind the other; zeros where a product has none."""
    biases = [array(product.inputs[2]) if len(product.inputs) > 2 else None for product in products]
    given = next((b for b in biases if b is not None), None)
    if given is None:
        return None
    parts = [np.zeros(n, given.dtype) if b is None else b.reshape(-1) for b, n in zip(biases, widths, strict=True)]
    return build.constant(np.concatenate(parts))

"""Queries, keys and values projected from one tensor by their own weights → one product, which Attention cuts up.

Where rotary embedding is between, it takes queries and keys together, as columns of that product. Only where the
kernels behind read columns of wider tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.attention.axis_parts import Part, pair
from py_ort.compiler.passes.fuse.packed_blocks import blocks_side_by_side
from py_ort.compiler.passes.match import drop, made_by, nodes_of, only_for
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.block_products import block_product, is_block_product, is_plain
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import array, attribute, attributes_of, dims, origins, rank, set_attributes, set_origins
from py_ort.ir.operators import MICROSOFT

_ROWS = 3  # the rank of [batch, positions, width]


class PackedProjections(Pass):
    """Two or three products of the same left operand become one."""

    after = ("attention", "linear")  # products that an Attention reads, with their biases

    def __init__(self, target: Target) -> None:
        """`target` tells whether the first provider's operator reads columns of wider tensors."""
        self._rotations = any(target.reads_columns(domain, "RotaryEmbedding") for domain in _DOMAINS)

    def call(self, model: ir.Model) -> int:
        """Take each Attention over [batch, positions, heads * size]."""
        attentions = list(nodes_of(model, "Attention"))
        positions = positions_of(attentions)
        count = sum(_pack(node, positions, self._rotations) for node in attentions)
        return count + sum(_rotate_together(node) for node in attentions if self._rotations)


_DOMAINS = ("", MICROSOFT)


def positions_of(nodes: Sequence[ir.Node]) -> dict[ir.Node, int]:
    """Number the nodes of the graphs that these are in."""
    graphs = dict.fromkeys(node.graph for node in nodes if node.graph is not None)
    return {node: i for graph in graphs for i, node in enumerate(graph)}


def _rotation(value: ir.Value | None) -> ir.Node | None:
    """The RotaryEmbedding of rows that makes a value."""
    node = None if value is None else value.producer()
    is_rotation = node is not None and node.op_type == "RotaryEmbedding" and node.domain in _DOMAINS
    return node if is_rotation and rank(value) == _ROWS else None


def _projection(node: ir.Node, index: int, rotations: bool) -> ir.Node | None:
    """The product by constant weights that makes input `index`, and nothing else, if `rotations` by a rotation."""
    value, reader = node.inputs[index], node
    rotation = _rotation(value) if rotations else None
    if rotation is not None and value is not None and only_for(value, node) and value not in node.inputs[index + 1 :]:
        value, reader = rotation.inputs[0], rotation
    return projection(value, reader) or _block_projection(value, reader)


def projection(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    """The product by constant weights that makes a value, and that for `reader` alone."""
    product = made_by(value, "MatMul")
    if product is None or not _is_for(product, reader) or has_epilogue(product):
        return None
    weights, bias = array(product.inputs[1]), product.inputs[2] if len(product.inputs) > 2 else None
    if weights is None or weights.ndim != 2 or (bias is not None and bias.const_value is None):
        return None
    return product


def _block_projection(value: ir.Value | None, reader: ir.Node) -> ir.Node | None:
    """The same of weights of few bits."""
    product = block_product(value)
    return product if product is not None and is_plain(product) and _is_for(product, reader) else None


def _is_for(product: ir.Node, reader: ir.Node) -> bool:
    """Whether what a product gives is read by one node of its graph alone, once."""
    value = product.outputs[0]
    return only_for(value, reader) and sum(v is value for v in reader.inputs) == 1


def first_of(products: Sequence[ir.Node], positions: Mapping[ir.Node, int]) -> ir.Node:
    """Return that which stands before the others."""
    return min(products, key=lambda product: positions[product])


def _pack(node: ir.Node, positions: Mapping[ir.Node, int], rotations: bool) -> bool:
    if len(node.inputs) < 3 or any(rank(v) != _ROWS for v in node.inputs[:3]):
        return False
    found = {i: product for i in range(3) if (product := _projection(node, i, rotations)) is not None}
    kinds = [(product.op_type, product.inputs[0]) for product in found.values()]
    kind = max(kinds, key=kinds.count, default=None)
    chosen = [i for i, product in found.items() if (product.op_type, product.inputs[0]) == kind]
    heads = attribute(node, "q_num_heads"), *[attribute(node, "kv_num_heads")] * 2
    known: list[list[Any]] = [dims(v) or [None] for v in node.inputs[:3]]
    widths = [sizes[-1] for sizes in known]
    if len(chosen) < 2 or not all(heads) or not all(isinstance(w, int) for w in widths):
        return False
    offsets = list(attribute(node, "offsets", (0, 0, 0)))
    sizes = list(attribute(node, "head_sizes", (widths[0] // heads[0], widths[2] // heads[2])))
    products = [found[i] for i in chosen]
    first = first_of(products, positions)
    packed = blocks_side_by_side(products, first) if is_block_product(first) else side_by_side(products, first)
    if packed is None:
        return False
    start = 0
    for i in chosen:
        rotation = _rotation(node.inputs[i])
        if rotation is not None:
            rotation.replace_input_with(
                0, _columns(Builder(rotation, origin=origins(rotation)), packed, start, int(widths[i]))
            )
        else:
            offsets[i] += start
            node.replace_input_with(i, packed)
        start += int(widths[i])
    for i in chosen:
        drop(found[i].outputs[0])
    set_attributes(node, offsets=offsets, head_sizes=sizes)
    made = packed.producer()
    set_origins(node, (*(origins(made) if made is not None else ()), *origins(node)))
    return True


def side_by_side(products: list[ir.Node], first: ir.Node) -> ir.Value | None:
    """Make one product for several of one operand, which are dropped then: its result has theirs side by side.

    It stands where the first of them does.
    """
    weights = [array(product.inputs[1]) for product in products]
    if len({w.dtype for w in weights if w is not None}) != 1:
        return None
    build = Builder(first, origin=[name for product in products for name in origins(product)])
    widths = [w.shape[1] for w in weights if w is not None]
    together: np.ndarray = np.concatenate(weights, axis=1)  # type: ignore[arg-type]
    packed: ir.Value = build.op(
        "MatMul",
        products[0].inputs[0],
        build.constant(together, products[0].inputs[1].name),  # type: ignore[union-attr]
        _bias(build, products, widths),
    )
    packed.type = products[0].outputs[0].type
    packed.shape = ir.Shape([*(dims(products[0].outputs[0]) or [])[:-1], sum(widths)])
    return packed


def _columns(build: Builder, value: ir.Value, start: int, width: int) -> ir.Value:
    made: ir.Value = build.op("Slice", value, [start], [start + width], [-1])
    made.type, made.shape = value.type, ir.Shape([*(dims(value) or [])[:-1], width])
    return made


def _bias(build: Builder, products: list[ir.Node], widths: list[int]) -> ir.Value | None:
    """The vectors that are added, one behind the other; zeros where a product has none."""
    biases = [array(product.inputs[2]) if len(product.inputs) > 2 else None for product in products]
    given = next((b for b in biases if b is not None), None)
    if given is None:
        return None
    parts = [np.zeros(n, given.dtype) if b is None else b.reshape(-1) for b, n in zip(biases, widths, strict=True)]
    return build.constant(np.concatenate(parts))


def _rotate_together(node: ir.Node) -> bool:
    """Queries and keys that rotation alike, and lie side by side: one rotation of all their heads."""
    rotations = [_rotation(v) for v in node.inputs[:2]]
    q, k = rotations
    if q is None or k is None or q is k or (q.domain, q.inputs[1:]) != (k.domain, k.inputs[1:]):
        return False
    if not all(only_for(rotation.outputs[0], node) for rotation in (q, k)):
        return False
    given = [
        {name: value for name, value in attributes_of(rotation).items() if name != "num_heads"} for rotation in (q, k)
    ]
    counts, cuts = [attribute(rotation, "num_heads") for rotation in (q, k)], pair(q.inputs[0], k.inputs[0])
    if given[0] != given[1] or not all(counts) or cuts is None or not _adjacent(*cuts):
        return False
    root, first, width, more = cuts[0].source, cuts[0].start, cuts[0].size, cuts[1].size
    if width // counts[0] != more // counts[1]:
        return False
    value = node.inputs[2]
    sizes = attribute(node, "head_sizes", None)
    known: list[Any] = dims(value) or [None]
    if sizes is None and not isinstance(known[-1], int):
        return False
    sizes = sizes or (width // counts[0], known[-1] // attribute(node, "kv_num_heads"))
    build = Builder(node, origin=[name for rotation in (q, k) for name in origins(rotation)])
    rows = _columns(build, root, first, width + more)
    rotated = build.op(
        "RotaryEmbedding", rows, *q.inputs[1:], domain=q.domain, **{**given[0], "num_heads": sum(counts)}
    )
    rotated.type, rotated.shape = rows.type, rows.shape
    offsets = attribute(node, "offsets", (0, 0, 0))
    for i in (0, 1):
        node.replace_input_with(i, rotated)
    set_attributes(node, offsets=[offsets[0], width + offsets[1], offsets[2]], head_sizes=list(sizes))
    for rotation in (q, k):
        drop(rotation.outputs[0])
    return True


def _adjacent(one: Part, other: Part) -> bool:
    """Whether the second part of rows begins where the first one ends."""
    return one.step == other.step == 1 and other.start == one.start + one.size and rank(one.source) == _ROWS

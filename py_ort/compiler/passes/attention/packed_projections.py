"""Queries, keys and values projected from one tensor by their own weights → one product, which Attention cuts up.

Where rotary embedding is between, it takes queries and keys together, as columns of that product. Only where the
kernels behind read columns of wider tensors.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.compiler.passes.attention.axis_parts import Part, pair
from py_ort.compiler.passes.fuse.side_by_side import block_projection, first_of, projection, side_by_side
from py_ort.compiler.passes.match import drop, only_for
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, origins, rank, remove, set_attributes, set_origins
from py_ort.ir.operators import MICROSOFT
from py_ort.schema.dialect import HEAD_SIZES, OFFSETS

_ROWS = 3  # the rank of [batch, positions, width]
_DOMAINS = ("", MICROSOFT)  # of RotaryEmbedding


@rewrite("Attention", after=("attention", "linear"))  # products that an Attention reads, with their biases
def packed_projections(node: ir.Node, target: Target) -> bool:
    """Make one of two or three products of one left operand, for an Attention over [batch, positions, heads * size]."""
    return _pack(node, _reads_columns(target))


def _reads_columns(target: Target) -> bool:
    """Return True if the first provider rotates columns of wider tensors."""
    return any(target.reads_columns(domain, "RotaryEmbedding") for domain in _DOMAINS)


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
    return projection(value, reader) or block_projection(value, reader)


def _pack(node: ir.Node, rotations: bool) -> bool:
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
    offsets = list(attribute(node, OFFSETS, (0, 0, 0)))
    sizes = list(attribute(node, HEAD_SIZES, (widths[0] // heads[0], widths[2] // heads[2])))
    products = [found[i] for i in chosen]
    packed = side_by_side(products, first_of(products))
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
    set_attributes(node, **{OFFSETS: offsets, HEAD_SIZES: sizes})
    made = packed.producer()
    set_origins(node, (*(origins(made) if made is not None else ()), *origins(node)))
    return True


def _columns(build: Builder, value: ir.Value, start: int, width: int) -> ir.Value:
    made: ir.Value = build.op("Slice", value, [start], [start + width], [-1])
    made.type, made.shape = value.type, ir.Shape([*(dims(value) or [])[:-1], width])
    return made


@packed_projections.also("Attention")
def _rotate_together(node: ir.Node, target: Target) -> bool:
    """Rotate queries and keys together, if they are adjacent and have the same rotation."""
    q, k = (_rotation(v) for v in node.inputs[:2]) if _reads_columns(target) else (None, None)
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
    sizes = attribute(node, HEAD_SIZES, None)
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
    offsets = attribute(node, OFFSETS, (0, 0, 0))
    for i in (0, 1):
        node.replace_input_with(i, rotated)
    moved = [offsets[0], width + offsets[1], offsets[2]]
    set_attributes(node, **{OFFSETS: moved, HEAD_SIZES: list(sizes)})
    for rotation in (q, k):
        drop(rotation.outputs[0])
    return True


def _adjacent(one: Part, other: Part) -> bool:
    """Return True if the second part of rows begins where the first one ends."""
    return one.step == other.step == 1 and other.start == one.start + one.size and rank(one.source) == _ROWS


@packed_projections.also("GroupQueryAttention", domain=MICROSOFT)
def _pack_groups(node: ir.Node, target: Target) -> bool:
    """Make one of three products with weights of few bits; the operator reads them side by side anyway."""
    products = [block_projection(value, node) for value in node.inputs[:3]] if target.launches else []
    found = [product for product in products if product is not None and target.runs_first(product)]
    packed = side_by_side(found, node) if len(found) == 3 else None
    if packed is None:
        return False
    for i, value in enumerate((packed, None, None)):
        node.replace_input_with(i, value)
    for product in found:
        remove(product)
    return True

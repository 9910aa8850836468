"""Nodes that read or write columns (along the last axis) of wider tensors, and their attributes."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import same_size
from py_ort.compiler.passes.placed.kernel_pass import Takes
from py_ort.ir.graph import array, attribute, dims, input_at, rank, set_attributes
from py_ort.ir.operators import INTERNAL, MICROSOFT, operator
from py_ort.schema.dialect import ELEMENTWISE_CHAIN, INTO, PRODUCT_RESIDUAL, REDUCTION, X_COLUMNS

_ROWS = (("", "RotaryEmbedding"), (MICROSOFT, "RotaryEmbedding"))
"""Operators that read input 0, [batch, positions, width], as columns, and write none."""
_CHAIN = (INTERNAL, ELEMENTWISE_CHAIN)

LANES = 4
"""Columns that kernels read and write at a time."""


def reads_columns(node: ir.Node, index: int, graph: ir.Graph, takes: Takes) -> bool:
    """Return True if a node of `graph` can read input `index` as columns of a wider tensor."""
    if node.graph is not graph or not takes(node):
        return False
    if node.domain == "" and node.op_type == "Concat":
        count, into = rank(node.inputs[index]), attribute(node, INTO)
        known = X_COLUMNS in node.attributes or None not in map(width_of, node.inputs[:into])
        return known and count is not None and attribute(node, "axis") % count == count - 1 and index != into
    if (node.domain, node.op_type) in _ROWS:
        return index == 0 and rank(node.inputs[0]) == 3
    if (node.domain, node.op_type) == _CHAIN:
        return _is_even(node)
    return index in operator(node.domain, node.op_type).columns and is_suited(node)


def _is_even(node: ir.Node) -> bool:
    """Return True if a chain's inputs and its result have one shape."""
    first = node.inputs[0]
    if first is None or {REDUCTION, "perm"} & set(node.attributes) or not dims(first) or None in node.inputs:
        return False
    given = attribute(node, X_COLUMNS) or [n for v in node.inputs for n in (0, width_of(v))]
    rows = [(dims(v) or [])[:-1] for v in node.inputs]
    even = all(len(each) == len(rows[0]) and all(map(same_size, each, rows[0])) for each in rows)
    return even and None not in given and len(set(given[1::2])) == 1


def is_suited(node: ir.Node) -> bool:
    """Return True if the kernel has columns for this node's attributes and sizes."""
    if rank(node.inputs[0]) != 4:
        return False
    if node.op_type == "ConvTranspose":
        dilated = any(d != 1 for d in attribute(node, "dilations", ()))
        return not dilated and input_at(node, PRODUCT_RESIDUAL) is None
    if node.op_type != "Resize":
        return True
    if attribute(node, "antialias", 0) or attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        return False
    axes = [axis % 4 for axis in attribute(node, "axes") or range(4)]
    if attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    if 3 not in axes:
        return True
    scales, sizes = (array(v) if v is not None else None for v in (*node.inputs[2:4], None, None)[:2])
    place = axes.index(3)
    if scales is not None and scales.size == len(axes):
        return bool(scales.reshape(-1)[place] == 1)
    return sizes is not None and sizes.size == len(axes) and int(sizes.reshape(-1)[place]) == width_of(node.inputs[0])


def width_of(value: ir.Value | None) -> int | None:
    known = dims(value)
    return known[-1] if known and isinstance(known[-1], int) else None


def take_columns(node: ir.Node, index: int, first: int, count: int) -> None:
    """Let the node read its input as columns; if it reads columns already, these are columns of them."""
    if node.op_type == "Concat" or (node.domain, node.op_type) == _CHAIN:
        sources = node.inputs[: attribute(node, INTO)]
        given = list(attribute(node, X_COLUMNS) or [n for v in sources for n in (0, width_of(v))])
        given[2 * index : 2 * index + 2] = [given[2 * index] + first, given[2 * index + 1]]
        set_attributes(node, **{X_COLUMNS: given})
        return
    name = operator(node.domain, node.op_type).columns.get(index, X_COLUMNS)
    inner, size = attribute(node, name) or (0, count)
    set_attributes(node, **{name: [first + inner, size]})

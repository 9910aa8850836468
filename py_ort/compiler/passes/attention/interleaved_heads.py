"""Heads of queries, keys and values by turns in one projection → all queries, all keys, all values.

GPT-NeoX and BLOOM keep [heads, parts, size] in a row. With the columns of the weights in another order it is
[parts, heads, size], and each part's heads lie one behind the other, where attention reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import drop, made_by, nodes_reading, only_user, size_at, split_constant
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, ints, origins, replace_value, required

_HEADS_FIRST = (0, 2, 1, 3)


@dataclass
class _Leaf:
    """Part `index` of all heads; `transposed`: with the heads before the positions."""

    value: ir.Value
    index: int
    transposed: bool


@rewrite("Reshape", before=("attention",))  # which reads heads from rows
def interleaved_heads(node: ir.Node) -> bool:
    """Take a Reshape into heads, behind a product with constant weights, and a bias."""
    known: list[Any] = dims(node.outputs[0]) or []
    wide = [size for size in known[2:] if isinstance(size, int)]
    columns = known[2] * known[3] * (known[4] if len(wide) == 3 else 1) if len(wide) == len(known) - 2 >= 2 else 0
    rows = node.inputs[0]
    if rows is None or not columns or len(known) > 5 or known[2] == 1 or only_user(rows) is not node:
        return False
    found = _projection(rows, columns)
    if found is None:
        return False
    product, weights, bias = found
    leaves = _leaves(node.outputs[0], known)
    if not leaves:
        return False
    heads, size = known[2], size_at(leaves[0].value)
    parts = columns // (heads * size)
    order = np.arange(columns).reshape(heads, parts, size).transpose(1, 0, 2).reshape(-1)
    build = Builder(node, origin=origins(node))
    made = build.op("MatMul", product.inputs[0], build.constant(np.ascontiguousarray(weights[:, order])))
    made = made if bias is None else build.op("Add", made, build.constant(bias[order]))
    made.type, made.shape = rows.type, rows.shape
    five = build.op("Reshape", made, [0, 0, parts, heads, size])
    five.type, five.shape = rows.type, ir.Shape([*known[:2], parts, heads, size])
    for leaf in leaves:
        here = build.op("Gather", five, np.array(leaf.index, np.int64), axis=2)
        here.type, here.shape = rows.type, ir.Shape([*known[:2], heads, size])
        if leaf.transposed:
            here = build.op("Transpose", here, perm=list(_HEADS_FIRST))
        here.type, here.shape = leaf.value.type, leaf.value.shape
        replace_value(leaf.value, here)
        drop(leaf.value)
    return True


def _projection(rows: ir.Value, columns: int) -> tuple[ir.Node, np.ndarray, np.ndarray | None] | None:
    """The product that makes rows, its weights, and the bias that is added, if there is one."""
    plus = made_by(rows, "Add")
    sides = None if plus is None else split_constant(plus)
    product = made_by(rows if sides is None else sides[0], "MatMul")
    weights = None if product is None or len(product.inputs) != 2 else array(product.inputs[1])
    if product is None or weights is None or weights.ndim != 2 or weights.shape[1] != columns:
        return None
    if plus is None:
        return product, weights, None
    if sides is None or sides[1].shape != (columns,) or only_user(product.outputs[0]) is not plus:
        return None
    return product, weights, sides[1]


def _leaves(value: ir.Value, known: list[Any]) -> list[_Leaf]:
    """The parts of each head, if that is all that is read."""
    if value.is_graph_output():
        return []
    found: list[_Leaf] = []
    for reader in nodes_reading(value):
        if (
            reader.domain == ""
            and reader.op_type == "Transpose"
            and tuple(attribute(reader, "perm", ())) == _HEADS_FIRST
        ):
            transposed = reader.outputs[0]
            inner = (
                []
                if transposed.is_graph_output()
                else [_parts(each, known, True) for each in nodes_reading(transposed)]
            )
        else:
            inner = [_parts(reader, known, False)]
        if not inner or not all(inner):
            return []
        found += [leaf for leaves in inner for leaf in leaves]
    same = {size_at(leaf.value) for leaf in found}
    return found if len(same) == 1 else []


def _parts(node: ir.Node, known: list[Any], transposed: bool) -> list[_Leaf]:
    """Return the parts of each head that a Split, Slice or Gather reads; empty for other nodes."""
    if node.domain != "" or any(o.is_graph_output() for o in node.outputs):
        return []
    last = len(known) - 1
    if node.op_type == "Gather" and len(known) == 5:
        index = array(node.inputs[1])
        fits = index is not None and index.ndim == 0 and attribute(node, "axis", 0) in (3, -2)
        return [_Leaf(node.outputs[0], int(required(index)) % known[3], transposed)] if fits else []
    if len(known) != 4:
        return []
    sizes = [size_at(output) for output in node.outputs]
    if node.op_type == "Split" and attribute(node, "axis", 0) in (-1, last) and len(set(sizes)) == 1:
        return [_Leaf(o, i, transposed) for i, o in enumerate(node.outputs)]
    if node.op_type != "Slice" or not isinstance(sizes[0], int) or sizes[0] == 0 or known[3] % sizes[0]:
        return []
    starts, axes, steps = (ints(v) for v in (*node.inputs[1:2], *(*node.inputs[3:5], None, None)[:2]))
    if starts is None or len(starts) != 1 or axes is None or axes[0] not in (-1, last) or (steps or [1]) != [1]:
        return []
    whole = starts[0] >= 0 and starts[0] % sizes[0] == 0 and sizes[0] < known[3]
    return [_Leaf(node.outputs[0], starts[0] // sizes[0], transposed)] if whole else []

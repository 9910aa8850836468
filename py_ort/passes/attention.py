"""softmax(q kᵀ · scale + mask) v → Attention, which never writes the scores.

Found from the Softmax. What exporters put around it is taken in: scales of the scores, of queries or of keys; masks
that are
added or chosen by Where; guards against rows without any key; heads made by reshapes and transposes, or cut out of
one tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import Builder, array, attribute, dims, origins, rank, remove, replace_value, scalar
from py_ort.passes.head_views import Heads, heads_of
from py_ort.passes.match import made_by, nodes_of, only_user, split_constant
from py_ort.passes.pass_base import HasOperator, Pass

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
_HEADS = (0, 2, 1, 3)
_SWAPPED = (0, 1, 3, 2)
_HIDES = -1e4  # numbers in masks that no score gets over
_VIEWS = ("Transpose", "Reshape", "Squeeze", "Unsqueeze")
_Mask = Callable[[Builder], ir.Value]


class Attention(Pass):
    """Each attention of heads on its own, [batch, heads, positions, size]."""

    def __init__(self, has_operator: HasOperator) -> None:
        """`has_operator` tells whether the first provider has Attention."""
        self._has_operator = has_operator

    def call(self, model: ir.Model) -> int:
        """Take each Softmax between two products."""
        if not self._has_operator("", "Attention"):
            return 0
        fused = sum(_fuse(node) for node in nodes_of(model, "Softmax"))
        return fused + sum(_lay_in_rows(node) for node in nodes_of(model, "Attention"))


@dataclass
class _Scores:
    product: ir.Node
    scale: float = 1.0
    masks: list[_Mask] = field(default_factory=list)
    constant: np.ndarray | None = None
    nodes: list[ir.Node] = field(default_factory=list)


def _scores(value: ir.Value | None, user: ir.Node) -> _Scores | None:
    """What the softmax is taken of: a product, scaled and masked."""
    if value is None or only_user(value) is not user:
        return None
    node = made_by(value, "MatMul", "Mul", "Div", "Add", "Where")
    if node is None:
        return None
    if node.op_type == "MatMul":
        constants = any(v is None or v.const_value is not None for v in node.inputs)
        return None if constants or len(node.inputs) > 2 or attribute(node, "activation") else _Scores(node)
    found: _Scores | None = None
    if node.op_type in ("Mul", "Div"):
        factor = _factor(node)
        found = None if factor is None else _scores(factor[0], node)
        if found is None or factor is None or found.masks:
            return None
        found.scale *= factor[1]
    elif node.op_type == "Add":
        for at in (0, 1):
            mask = node.inputs[1 - at]
            if mask is not None and mask is not node.inputs[at] and _is_mask(mask, value):
                found = _scores(node.inputs[at], node)
            if found is not None:
                found.constant = array(mask) if not found.masks else None
                found.masks.append(lambda build, mask=mask: mask)  # type: ignore[misc]
                break
    else:
        found = _chosen(node)
    if found is not None:
        found.nodes.append(node)
    return found


def _factor(node: ir.Node) -> tuple[ir.Value, float] | None:
    """For a product with, or a quotient by, one number: the other operand, and the factor."""
    found = split_constant(node)
    if found is None or found[1].size != 1 or found[1].ndim > 1 or found[1].dtype.kind != "f":
        return None
    number = float(found[1].reshape(-1)[0])
    if node.op_type == "Mul":
        return found[0], number
    return (found[0], 1.0 / number) if node.inputs[0] is found[0] and number != 0 else None


def _is_mask(mask: ir.Value, scores: ir.Value) -> bool:
    """Whether it broadcasts to the scores, and goes over all keys."""
    known, wide = dims(mask), dims(scores)
    if known is None or wide is None or not 2 <= len(known) <= len(wide) or known[-1] == 1:
        return False
    return not any(
        isinstance(size, int) and size != 1 and isinstance(other, int) and other != size
        for size, other in zip(reversed(known), reversed(wide), strict=False)
    )


def _chosen(node: ir.Node) -> _Scores | None:
    """Where(condition, scores, number), or the other way round."""
    condition = node.inputs[0]
    if condition is None or not _is_mask(condition, node.outputs[0]):
        return None
    for at in (1, 2):
        fill = scalar(node.inputs[3 - at])
        if fill is None or fill > _HIDES:
            continue
        found = _scores(node.inputs[at], node)
        if found is None:
            return None
        dtype = (node.outputs[0].dtype or ir.DataType.FLOAT).numpy()

        def mask(build: Builder, at: int = at, fill: float = float(fill), dtype: Any = dtype) -> ir.Value:
            pair = [np.zeros((), dtype), np.asarray(fill, dtype)]
            made: ir.Value = build.op("Where", condition, *(pair if at == 1 else pair[::-1]))
            return made

        found.masks.append(mask)
        found.constant = None
        return found
    return None


def _product_after(softmax: ir.Node) -> tuple[ir.Node, list[ir.Node]] | None:
    """The product with the values, and the nodes of a guard against rows of NaN (no key is seen: the result is 0)."""
    value = softmax.outputs[0]
    between: list[ir.Node] = []
    users = [use.node for use in value.uses()]
    guard = next((n for n in users if n.domain == "" and n.op_type == "IsNaN"), None)
    if guard is not None and len(users) == 2 and not value.is_graph_output():
        where = only_user(guard.outputs[0])
        if where is None or where.op_type != "Where" or where.inputs[2] is not value or scalar(where.inputs[1]) != 0:
            return None
        between, value = [guard, where], where.outputs[0]
    product = only_user(value)
    if product is None or product.domain != "" or product.op_type != "MatMul" or product.inputs[0] is not value:
        return None
    if len(product.inputs) > 2 or attribute(product, "activation") or product.graph is not softmax.graph:
        return None
    return product, between


def _unscaled(value: ir.Value | None, scales: list[ir.Node]) -> float:
    """The factor of a Mul by a number behind views of `value` that nothing else reads; the Mul is put on the list."""
    while value is not None:
        node = made_by(value, *_VIEWS, "Mul", "Div")
        if node is None or only_user(value) is None:
            return 1.0
        if node.op_type in ("Mul", "Div"):
            factor = _factor(node)
            if factor is None:
                return 1.0
            scales.append(node)
            return factor[1]
        value = node.inputs[0]
    return 1.0


def _fuse(softmax: ir.Node) -> bool:
    after = _product_after(softmax)
    if after is None or attribute(softmax, "axis", -1) not in (-1, 3) or rank(softmax.inputs[0]) != 4:
        return False
    if softmax.outputs[0].dtype not in _FLOATS:
        return False
    last, between = after
    scores = _scores(softmax.inputs[0], softmax)
    if scores is None or scores.product.graph is not softmax.graph:
        return False
    query, turned = scores.product.inputs
    value = last.inputs[1]
    if query is None or turned is None or value is None or value.const_value is not None:
        return False
    if any(rank(v) != 4 for v in (query, turned, value)):
        return False
    scales: list[ir.Node] = []
    scale = scores.scale * _unscaled(query, scales) * _unscaled(turned, scales)
    sizes = dims(query) or []
    if not isinstance(sizes[3], int) or scale == 0:
        return False
    # Nothing can go wrong from here on.
    inner = [scores.product, *scores.nodes, softmax, *between, last]
    build = Builder(last, origin=[name for node in inner for name in origins(node)])
    for node in scales:
        replace_value(node.outputs[0], _factor(node)[0])  # type: ignore[index]
        remove(node)
    query, turned = scores.product.inputs
    masks = [mask(build) for mask in scores.masks]
    causal = len(masks) == 1 and scores.constant is not None and _is_causal(scores.constant)
    mask = None if causal or not masks else masks[0]
    for more in masks[1:]:
        mask = build.op("Add", mask, more)
    attributes = {"scale": scale, "is_causal": int(causal)}
    parts = heads_of(query), heads_of(turned, _SWAPPED), heads_of(value)
    q, k, v = parts
    if q is not None and k is not None and v is not None and q.count % k.count == 0 and k.count == v.count:
        _in_rows(build, (q, k, v), mask, attributes, last.outputs[0])
    else:
        replace_value(last.outputs[0], _by_head(build, query, turned, value, mask, attributes, last.outputs[0]))  # type: ignore[arg-type]
    for node in reversed(inner):
        remove(node)
    return True


def _lay_in_rows(node: ir.Node) -> bool:
    """An Attention on [batch, heads, positions, size] that need not have been transposed for it."""
    if len(node.outputs) > 1 and any(o.uses() or o.is_graph_output() for o in node.outputs[1:]):
        return False
    if len(node.inputs) < 3 or any(v is not None for v in node.inputs[4:]):
        return False
    if any(rank(v) != 4 or v is None or v.const_value is not None for v in node.inputs[:3]):
        return False
    q, k, v = (heads_of(value) for value in node.inputs[:3])
    if q is None or k is None or v is None or q.count % k.count != 0 or k.count != v.count:
        return False
    known = ("q_num_heads", "kv_num_heads")
    attributes = {name: item.value for name, item in node.attributes.items() if name not in known}
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    _in_rows(Builder(node), (q, k, v), mask, attributes, node.outputs[0])
    remove(node)
    return True


def _is_causal(mask: np.ndarray) -> bool:
    """Whether a mask lets each query see the keys up to its own position, and only those."""
    if mask.ndim < 2 or mask.shape[-1] != mask.shape[-2] or mask.size != mask.shape[-1] ** 2 or mask.shape[-1] < 2:
        return False
    seen = np.tril(np.ones(mask.shape[-2:], bool))
    flat = mask.reshape(mask.shape[-2:])
    return bool(np.all(flat[seen] == 0) and np.all(flat[~seen] <= _HIDES))


def _in_rows(
    build: Builder,
    parts: tuple[Heads, Heads, Heads],
    mask: ir.Value | None,
    attributes: dict[str, Any],
    output: ir.Value,
) -> None:
    """On [batch, positions, width]; so is the result, and transposed back for readers that do not do that anyway."""
    q, k, v = parts
    rows = [part.rows(build) for part in parts]
    plain = all(part.offset == 0 and part.width == part.count * part.size for part in parts)
    if not plain:
        attributes = {**attributes, "offsets": [p.offset for p in parts], "head_sizes": [q.size, v.size]}
    made: ir.Value = build.op("Attention", *rows, mask, q_num_heads=q.count, kv_num_heads=k.count, **attributes)
    unknown: list[Any] = [None] * 4
    known, queries = dims(output) or unknown, (dims(rows[0]) or unknown)[:2]
    made.type, made.shape = output.type, ir.Shape([*queries, q.count * v.size])
    split = build.op("Reshape", made, [0, 0, q.count, v.size])
    split.shape = ir.Shape([*queries, q.count, v.size])
    reader = only_user(output)
    if reader is not None and reader.domain == "" and reader.op_type == "Transpose" and _swaps_heads(reader):
        replace_value(reader.outputs[0], split)
        remove(reader)
        return
    back: ir.Value = build.op("Transpose", split, perm=list(_HEADS))
    back.shape = ir.Shape([known[0], q.count, known[2], v.size])
    replace_value(output, back)


def _swaps_heads(node: ir.Node) -> bool:
    return tuple(attribute(node, "perm", ())) == _HEADS


def _by_head(
    build: Builder,
    query: ir.Value,
    turned: ir.Value,
    value: ir.Value,
    mask: ir.Value | None,
    attributes: dict[str, Any],
    output: ir.Value,
) -> ir.Value:
    """On [batch, heads, positions, size]."""
    before = made_by(turned, "Transpose")
    if before is not None and tuple(attribute(before, "perm")) == _SWAPPED:
        key = before.inputs[0]
    else:
        key = build.op("Transpose", turned, perm=list(_SWAPPED))
    made: ir.Value = build.op("Attention", query, key, value, mask, **attributes)
    made.type, made.shape = output.type, output.shape
    return made

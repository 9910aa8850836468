"""What a softmax of attention is taken of: a product, scaled, capped and masked, in whatever order it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.attention.causal_masks import Running, added_mask, in_rows, same_offset, truths
from py_ort.compiler.passes.match import made_by, only_user, same_size, size_at, split_constant
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import dims, rank, scalar
from py_ort.ir.rules import Rules
from py_ort.ir.shape_data import product

MASKED = -1e4  # numbers in masks that no score gets over
_STACKED = 3  # the rank of [batch * heads, positions, size]


@dataclass
class Mask:
    """`make` makes what is added. `offset`: the mask is causal from there on, and masks with `fill`."""

    make: Callable[[Builder], ir.Value]
    value: ir.Value
    offset: Any = None
    fill: float = 0.0


@dataclass
class Scores:
    """`product` times `scale`, kept below `softcap` (0: it is not), and masked; `nodes` are behind the product.

    Hidden scores are no less than `floor`, where there is one.
    """

    product: ir.Node
    scale: float = 1.0
    softcap: float = 0.0
    floor: float | None = None
    masks: list[Mask] = field(default_factory=list)
    nodes: list[ir.Node] = field(default_factory=list)


_step = Rules[Callable[[ir.Node], "Scores | None"]]()
"""What scores are, by the operator that makes them."""


def scores_of(value: ir.Value | None, user: ir.Node) -> Scores | None:
    """Take the scores apart; nothing but `user` may read them."""
    if value is None or only_user(value) is not user:
        return None
    node = value.producer()
    step = None if node is None else _step.of(node)
    found = None if node is None or step is None else step(node)
    if node is not None and found is not None and found.product is not node:
        found.nodes.append(node)
    return found


@_step("MatMul")
def _product(node: ir.Node) -> Scores | None:
    constants = any(v is None or v.const_value is not None for v in node.inputs)
    return None if constants or len(node.inputs) > 2 or has_epilogue(node) else Scores(node)


def factor_of(node: ir.Node) -> tuple[ir.Value, float] | None:
    """For a product with, or a quotient by, one number: the other operand, and the factor."""
    found = split_constant(node)
    if found is None or found[1].size != 1 or found[1].ndim > 1 or found[1].dtype.kind != "f":
        return None
    number = float(found[1].reshape(-1)[0])
    if node.op_type == "Mul":
        return found[0], number
    return (found[0], 1.0 / number) if node.inputs[0] is found[0] and number != 0 else None


@_step("Mul", "Div")
def _scaled(node: ir.Node) -> Scores | None:
    factor = factor_of(node)
    if factor is None:
        return None
    capped = made_by(factor[0], "Tanh")
    if capped is not None and only_user(capped.outputs[0]) is node:
        return _capped(capped, factor[1])
    found = scores_of(factor[0], node)
    if found is None or found.masks or found.softcap:
        return None
    found.scale *= factor[1]
    return found


def _capped(capped: ir.Node, cap: float) -> Scores | None:
    """cap · tanh(scores / cap)."""
    found = scores_of(capped.inputs[0], capped)
    if found is None or found.masks or found.softcap or cap <= 0:
        return None
    found.scale *= cap
    found.softcap = cap
    found.nodes.append(capped)
    return found


@_step("Add")
def _added(node: ir.Node) -> Scores | None:
    for at in (0, 1):
        mask = node.inputs[1 - at]
        if mask is None or mask is node.inputs[at] or not _is_mask(mask, node.inputs[at]):
            continue
        found = scores_of(node.inputs[at], node)
        if found is None:
            continue
        offset, fill = added_mask(mask) or (None, 0.0)
        offset = in_rows(offset, mask, size_at(node.outputs[0], -2)) if fill <= MASKED else None
        found.masks.append(Mask(partial(_as_it_is, mask), mask, offset, fill))
        return found
    return None


def _as_it_is(mask: ir.Value, build: Builder) -> ir.Value:
    return mask


def _is_mask(mask: ir.Value, scores: ir.Value | None) -> bool:
    """Whether it broadcasts to the scores, and goes over all keys."""
    known, wide = dims(mask), dims(scores)
    if known is None or wide is None or not 2 <= len(known) <= len(wide) or known[-1] == 1:
        return False
    return not any(
        isinstance(size, int) and size != 1 and isinstance(other, int) and other != size
        for size, other in zip(reversed(known), reversed(wide), strict=False)
    )


@_step("Where")
def _chosen(node: ir.Node) -> Scores | None:
    """Where(condition, scores, number), or the other way round."""
    condition = node.inputs[0]
    if condition is None or not _is_mask(condition, node.outputs[0]):
        return None
    for at in (1, 2):
        fill = scalar(node.inputs[3 - at])
        if fill is None or fill > MASKED:
            continue
        found = scores_of(node.inputs[at], node)
        if found is None:
            return None
        dtype = (node.outputs[0].dtype or ir.DataType.FLOAT).numpy()

        def make(build: Builder, at: int = at, fill: float = float(fill), dtype: Any = dtype) -> ir.Value:
            pair = [np.zeros((), dtype), np.asarray(fill, dtype)]
            made: ir.Value = build.op("Where", condition, *(pair if at == 1 else pair[::-1]))
            return made

        seen = truths(condition)
        offset = seen.offset if seen is not None and seen.inside == (at == 1) else None
        offset = in_rows(offset, condition, size_at(node.outputs[0], -2))
        found.masks.append(Mask(make, condition, offset, float(fill)))
        return found
    return None


@_step("Cast")
def _widened(node: ir.Node) -> Scores | None:
    """float16 scores, of which the softmax is taken in float32."""
    if node.inputs[0] is None or node.inputs[0].dtype != ir.DataType.FLOAT16:
        return None
    return scores_of(node.inputs[0], node) if node.outputs[0].dtype == ir.DataType.FLOAT else None


@_step("Reshape")
def _stacked(node: ir.Node) -> Scores | None:
    """[batch * heads, queries, keys] to [batch, heads, queries, keys], or back."""
    return scores_of(node.inputs[0], node) if stacks(node) else None


def stacks(node: ir.Node) -> bool:
    """Whether a Reshape makes [batch * heads, queries, keys] of [batch, heads, queries, keys], or the other way."""
    if node.domain != "" or node.op_type != "Reshape":
        return False
    three, four = sorted((dims(v) or [] for v in (node.inputs[0], node.outputs[0])), key=len)
    if (len(three), len(four)) != (_STACKED, _STACKED + 1) or not same_size(product(four[:2]), three[0]):
        return False
    # One size may be left open: there are as many elements before as after.
    return sum(not same_size(a, b) for a, b in zip(three[1:], four[2:], strict=True)) <= 1


@_step("Max")
def _floored(node: ir.Node) -> Scores | None:
    """Max(scores, number), so that masks that add up stay finite."""
    found = split_constant(node)
    floor = None if found is None or found[1].size != 1 else float(found[1].reshape(-1)[0])
    inner = scores_of(found[0], node) if found is not None and floor is not None and floor <= MASKED else None
    if inner is not None:
        inner.floor = floor
    return inner


def combined_masks(
    build: Builder, masks: list[Mask], past: Any, floor: float | None = None, running: bool = False
) -> tuple[bool | Running, ir.Value | None]:
    """Whether queries see only the keys before them, `past` of which come before all of them, and the other masks' sum.

    With `running`, how many come before them may be what a run computes.

    Where a row may have no key at all, the number that masks decides: only -∞ is the same as causality then.
    """
    alone = len(masks) == 1
    full = [m for m in masks if alone or (m.fill == -np.inf and floor is None)]
    causal = [m for m in full if same_offset(m.offset, past) or (running and isinstance(m.offset, Running))]
    total: ir.Value | None = None
    for mask in masks:
        if not any(mask is m for m in causal[:1]):
            made = mask.make(build)
            total = made if total is None else build.op("Add", total, made)
    if total is not None and floor is not None and total.dtype is not None:
        total = build.op("Max", total, np.array(floor, total.dtype.numpy()))
    return causal[0].offset if causal and isinstance(causal[0].offset, Running) else bool(causal), total


def unscaled(value: ir.Value | None, scales: list[ir.Node]) -> float:
    """The factor of a Mul by a number behind views of `value` that nothing else reads; the Mul is put on the list."""
    while value is not None:
        node = made_by(value, "Transpose", "Reshape", "Squeeze", "Unsqueeze", "RotaryEmbedding", "Mul", "Div")
        # Who asks for its shape does not see the scale.
        readers = [use.node for use in value.uses() if use.node.op_type != "Shape"]
        if node is None or len(readers) != 1 or value.is_graph_output():
            return 1.0
        if node.op_type in ("Mul", "Div"):
            factor = factor_of(node)
            if factor is None:
                return 1.0
            scales.append(node)
            return factor[1]
        value = node.inputs[0]
    return 1.0


def unstacked_masks(masks: list[Mask], heads: int | None) -> list[Mask] | None:
    """The masks as they are added to [batch, heads, queries, keys]; without `heads`, the batch is of size 1."""
    result: list[Mask] = []
    for mask in masks:
        count = rank(mask.value)
        if count is None or (count > _STACKED and heads is None):
            return None
        if count == _STACKED and size_at(mask.value, 0) != 1:
            if heads is None:
                return None
            mask = Mask(partial(_by_head, mask, heads), mask.value, mask.offset, mask.fill)
        result.append(mask)
    return result


def _by_head(mask: Mask, heads: int, build: Builder) -> ir.Value:
    """[batch * heads, queries, keys] as [batch, heads, queries, keys]."""
    stacked = mask.make(build)
    target = build.op("Concat", [-1, heads], build.op("Shape", stacked, start=1, end=3), axis=0)
    made: ir.Value = build.op("Reshape", stacked, target)
    return made

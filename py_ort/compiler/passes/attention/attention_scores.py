"""Scores of attention, the operand of its softmax: a product, scaled, capped and masked, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
_ABSORBS = -1e12  # numbers that a score added to them does not change: float32 rounds it away
_STACKED = 3  # the rank of [batch * heads, positions, size]


@dataclass
class Mask:
    """A step that masks: an Add of `value`, or a Where by the truths `value`, which puts `fill` in a score's place.

    `offset`: the mask is causal from there on, and masks with `fill`. `shown`: the truth that keeps a score; None for
    an Add.
    """

    value: ir.Value
    offset: Any = None
    fill: float = 0.0
    shown: bool | None = None
    dtype: ir.DataType = ir.DataType.FLOAT
    heads: int | None = None  # of which [batch * heads, queries, keys] is


@dataclass
class Scores:
    """`product` times `scale`, kept below `softcap` (0: it is not), and masked in this order; `nodes` are behind it.

    Hidden scores are no less than `floor`, where there is one.
    """

    product: ir.Node
    scale: float = 1.0
    softcap: float = 0.0
    floor: float | None = None
    masks: list[Mask] = field(default_factory=list)
    nodes: list[ir.Node] = field(default_factory=list)


_step = Rules[Callable[[ir.Node], "Scores | None"]]()
"""Functions that take scores apart, by the operator that makes the scores."""


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
        found.masks.append(Mask(mask, offset, fill, dtype=_dtype(node)))
        return found
    return None


def _dtype(node: ir.Node) -> ir.DataType:
    return node.outputs[0].dtype or ir.DataType.FLOAT


def _is_mask(mask: ir.Value, scores: ir.Value | None) -> bool:
    """Return True unless sizes are known that do not broadcast to the scores; the kernels check all in a run."""
    known, wide = dims(mask), dims(scores)
    if known is None or wide is None or not 2 <= len(known) <= len(wide):
        return False
    return not any(
        isinstance(size, int) and size != 1 and isinstance(other, int) and other != size
        for size, other in zip(reversed(known), reversed(wide), strict=False)
    )


@_step("Where")
def _chosen(node: ir.Node) -> Scores | None:
    """Where(condition, scores, number), or the other way round."""
    condition = node.inputs[0]
    for at in (1, 2):
        fill = scalar(node.inputs[3 - at])
        if fill is None or fill > MASKED or condition is None or not _is_mask(condition, node.inputs[at]):
            continue
        found = scores_of(node.inputs[at], node)
        if found is None:
            return None
        seen = truths(condition)
        offset = seen.offset if seen is not None and seen.inside == (at == 1) else None
        offset = in_rows(offset, condition, size_at(node.outputs[0], -2))
        found.masks.append(Mask(condition, offset, float(fill), at == 1, _dtype(node)))
        return found
    return None


@_step("Cast")
def _widened(node: ir.Node) -> Scores | None:
    """Follow float16 scores whose softmax is computed in float32."""
    if node.inputs[0] is None or node.inputs[0].dtype != ir.DataType.FLOAT16:
        return None
    return scores_of(node.inputs[0], node) if node.outputs[0].dtype == ir.DataType.FLOAT else None


@_step("Reshape")
def _stacked(node: ir.Node) -> Scores | None:
    """[batch * heads, queries, keys] to [batch, heads, queries, keys], or back."""
    return scores_of(node.inputs[0], node) if stacks(node) else None


def stacks(node: ir.Node) -> bool:
    """Return True if a Reshape joins batch and heads of [batch, heads, queries, keys], or splits them."""
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


@dataclass
class Masking:
    """The masks of an Attention, combined.

    `causal`: queries see only the keys before them. Scores that are not `kept` count as 0; then `added` is added.
    """

    causal: bool | Running = False
    added: ir.Value | None = None
    kept: ir.Value | None = None


def combined_masks(
    build: Builder, masks: list[Mask], past: Any, floor: float | None = None, running: bool = False
) -> Masking:
    """Combine the masks of scores; a mask that hides the keys after each query's own position becomes `causal`.

    `past` keys come before the first query's own. With `running`, a run may compute their number.

    Several masks together may hide all keys of a row, and the number that they fill in then decides the result. Of
    several masks, only one that fills in -∞ becomes `causal`, and only if no later mask writes another number over it.
    """
    made = Masking()
    last = max((i for i, m in enumerate(masks) if m.shown is not None and m.fill != -np.inf), default=-1)
    full = [m for i, m in enumerate(masks) if len(masks) == 1 or (m.fill == -np.inf and floor is None and i > last)]
    causal = [m for m in full if same_offset(m.offset, past) or (running and isinstance(m.offset, Running))]
    if causal:
        made.causal = causal[0].offset if isinstance(causal[0].offset, Running) else True
    for mask in masks:
        if not any(mask is m for m in causal[:1]):
            _combine(build, made, mask)
    if made.added is not None and floor is not None and made.added.dtype is not None:
        made.added = build.op("Max", made.added, np.array(floor, made.added.dtype.numpy()))
    return made


def _combine(build: Builder, made: Masking, mask: Mask) -> None:
    """Combine a mask with the masks before it."""
    value = mask.value
    if mask.heads is not None:  # [batch * heads, queries, keys] as [batch, heads, queries, keys]
        target = build.op("Concat", [-1, mask.heads], build.op("Shape", value, start=1, end=3), axis=0)
        value = build.op("Reshape", value, target)
    before, dtype = made.added, mask.dtype.numpy()
    if before is not None and before.dtype != mask.dtype:
        before = build.op("Cast", before, to=int(mask.dtype))
    if mask.shown is None:
        made.added = value if before is None else build.op("Add", before, value)
        return
    pair = [np.zeros((), dtype) if before is None else before, np.asarray(mask.fill, dtype)]
    made.added = build.op("Where", value, *(pair if mask.shown else pair[::-1]))
    if np.isfinite(mask.fill) and mask.fill > _ABSORBS:
        negated = made_by(value, "Not")
        kept = value if mask.shown else build.op("Not", value) if negated is None else negated.inputs[0]
        made.kept = kept if made.kept is None else build.op("And", made.kept, kept)


def unscaled(value: ir.Value | None, scales: list[ir.Node]) -> float:
    """The factor of a Mul by a number behind views of `value` that nothing else reads; the Mul is put on the list."""
    while value is not None:
        node = made_by(value, "Transpose", "Reshape", "Squeeze", "Unsqueeze", "RotaryEmbedding", "Mul", "Div")
        # Readers of the shape are unaffected by a scale.
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
            mask = replace(mask, heads=heads)
        result.append(mask)
    return result

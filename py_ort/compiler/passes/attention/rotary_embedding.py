"""RotaryEmbedding from its parts: pairs of elements of each head, rotated by angles of their position.

Written as x cos + rotated(x) sin, where rotated(x) has halves or neighbors swapped and one of them negated, or as
what becomes of either half: a cos - b sin and b cos + a sin. What is behind the rotated elements of a head passes.

Becomes ai.onnx's form where angles are each sequence's own, com.microsoft's from position 0 where they are all
sequences'; in the rows that heads lie in. Tables that hold each number twice are halved (`rotary_caches.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from py_ort.compiler.passes.attention.axis_parts import Part, pair, parts
from py_ort.compiler.passes.attention.head_views import heads_of
from py_ort.compiler.passes.attention.rotary_caches import Make, half_of
from py_ort.compiler.passes.match import drop, made_by, near, nodes_of, only_user, same_size, size_at
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, origins, rank, remove, replace_value, required
from py_ort.ir.operators import MICROSOFT

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
_HEADS_FIRST, _PLACES_FIRST = (1, 2), (2, 1)  # axes of heads and of positions


class RotaryEmbedding(Pass):
    """On heads of rank 4, heads or positions first."""

    # It matches certain reshapes, which an Attention would hide; and rotated pairs are not interleaved heads.
    before = ("reshapes", "attention", "interleaved_heads")

    def __init__(self, target: Target) -> None:
        """`target` decides between the forms of ONNX and com.microsoft, by the first provider's kernels."""
        self._target = target
        self._caches: dict[Any, ir.Value] = {}

    def call(self, model: ir.Model) -> int:
        """Try Adds, then Concats. Then include elements that are not rotated, and rotate in rows instead of by head."""
        if not self._target.has("", "RotaryEmbedding"):
            return 0
        self._caches = {}
        count = 0
        for node in nodes_of(model, "Add", "Concat"):
            found = _whole(node) if node.op_type == "Add" else _by_half(node)
            count += found is not None and self._fuse(node, found)
        count += sum(_take_rest(node) for node in nodes_of(model, "RotaryEmbedding"))
        return count + sum(_lay(node) for node in nodes_of(model, "RotaryEmbedding"))

    def _fuse(self, node: ir.Node, found: _Rotation) -> bool:
        chosen = _source(found)
        if chosen is None or chosen[0].dtype not in _FLOATS:
            return False
        (source, last), size = chosen, found.half * 2
        known = dims(source)
        if known is None or len(known) != 4:
            return False
        place = _place(found.cos, known, found.half), _place(found.sin, known, found.half)
        if place[0] is None or place[0] != place[1]:
            return False
        axes, batched = place[0]
        if not batched and not self._target.has(MICROSOFT, "RotaryEmbedding"):
            return False
        halves = [(value, self._half(found, value)) for value in (found.cos, found.sin)]
        if any(make is None for _, make in halves):
            return False
        build = Builder(last, origin=(*origins(node), *origins(last)))
        caches = [self._cache(node, found, v, axes, batched, make) for v, make in halves if make is not None]
        inputs, domain = (caches, "") if batched else ([[0], *caches], MICROSOFT)
        attributes: dict[str, Any] = {
            "interleaved": int(found.interleaved) or None,
            "rotary_embedding_dim": size if size != known[3] else None,
        }

        def rotate(value: ir.Value, heads: int | None) -> ir.Value:
            made: ir.Value = build.op("RotaryEmbedding", value, *inputs, domain=domain, num_heads=heads, **attributes)
            made.type, made.shape = value.type, value.shape
            return made

        result = _in_rows(build, source, axes, rotate)
        result.type, result.shape = last.outputs[0].type, ir.Shape(known)
        replace_value(last.outputs[0], result)
        remove(last)
        for made in (found.last, node):
            drop(made.outputs[0])
        return True

    def _half(self, found: _Rotation, value: ir.Value) -> Make | None:
        return half_of(value, found.interleaved) if found.doubled else lambda build: value

    def _cache(
        self, node: ir.Node, found: _Rotation, value: ir.Value, axes: tuple[int, int], batched: bool, half: Make
    ) -> ir.Value:
        """The numbers as [batch, positions, half], or as [positions, half] for all of a batch; made once."""
        key = node.graph, value, found.interleaved, found.doubled, batched
        if key not in self._caches:
            build = Builder(node)
            made = half(build)
            missing = 4 - (rank(made) or 0)
            if not batched:
                made = build.op("Reshape", made, [-1, found.half]) if rank(made) != 2 else made
            elif missing == 0:
                made = build.op("Squeeze", made, [axes[0]])
            elif missing == 2:
                made = build.op("Unsqueeze", made, [0])
            self._caches[key] = made
        return self._caches[key]


def _take_rest(node: ir.Node) -> bool:
    """The operator on the first elements of each head, and the others put behind: one operator on whole heads."""
    x, joined = node.inputs[0], only_user(node.outputs[0])
    if rank(x) != 4 or joined is None:
        return False
    for part in parts(x)[1:]:
        size = attribute(node, "rotary_embedding_dim", 0) or part.size
        if part.step != 1 or size != part.size or not _puts_the_rest(joined, node, part):
            continue
        build = Builder(joined, origin=(*origins(node), *origins(joined)))
        attributes = {**attributes_of(node), "rotary_embedding_dim": size}
        result = build.op("RotaryEmbedding", part.source, *node.inputs[1:], **attributes)
        result.type, result.shape = part.source.type, part.source.shape
        build.finish(result)
        drop(node.outputs[0])
        return True
    return False


def _lay(node: ir.Node) -> bool:
    """Rotate heads within rows [batch, positions, …] instead of as [batch, heads, positions, size]."""
    x = node.inputs[0]
    if x is None or rank(x) != 4 or x.const_value is not None or heads_of(x) is None:
        return False
    build = Builder(node)

    def rotate(value: ir.Value, heads: int | None) -> ir.Value:
        attributes = {**attributes_of(node), "num_heads": heads}
        made: ir.Value = build.op("RotaryEmbedding", value, *node.inputs[1:], **attributes)
        made.type, made.shape = value.type, value.shape
        return made

    result = _in_rows(build, x, _HEADS_FIRST, rotate)
    build.finish(result)
    return True


@dataclass
class _Rotation:
    """A rotation of a range of elements, as part of nearer and farther values; `last` makes the result."""

    rotated: list[Part]
    cos: ir.Value
    sin: ir.Value
    half: int
    interleaved: bool
    doubled: bool
    last: ir.Node
    with_rest: bool = False


def _source(found: _Rotation) -> tuple[ir.Value, ir.Node] | None:
    """The whole heads of which a part is rotated, and the node whose result is the whole rotated heads."""
    if found.with_rest:
        return found.rotated[0].source, found.last
    joined = only_user(found.last.outputs[0])
    for part in found.rotated if joined is not None else ():
        if _puts_the_rest(required(joined), found.last, part):
            return part.source, required(joined)
    return next(((p.source, found.last) for p in found.rotated if _is_all(p)), None)


def _place(cache: ir.Value, x: list[Any], half: int) -> tuple[tuple[int, int], bool] | None:
    """Which axes of x [batch, …, …, size] are heads and positions, and whether the cache differs within a batch."""
    known = dims(cache)
    if known is None or not 2 <= len(known) <= 4 or known[-1] not in (half, 2 * half):
        return None
    wide = [1] * (4 - len(known)) + known
    for heads, places in (_HEADS_FIRST, _PLACES_FIRST):
        if wide[heads] != 1 or not same_size(wide[places], x[places]):
            continue
        if same_size(wide[0], x[0]) or wide[0] == 1:
            return (heads, places), same_size(wide[0], x[0])
    return None


def _in_rows(build: Builder, source: ir.Value, axes: tuple[int, int], rotate: Any) -> ir.Value:
    """Rotate heads in place in rows [batch, positions, heads * size], or else in [batch, heads, positions, size]."""
    known: list[Any] = dims(source) or []
    result: ir.Value
    if axes == _PLACES_FIRST:
        count, size = known[2:]
        if not isinstance(count, int):
            by_head = build.op("Transpose", source, perm=[0, 2, 1, 3])
            result = build.op("Transpose", rotate(by_head, None), perm=[0, 2, 1, 3])
            return result
        rows = build.op("Reshape", source, [0, 0, count * size])
        result = build.op("Reshape", rotate(rows, count), [0, 0, count, size])
        return result
    heads = heads_of(source)
    if heads is None:
        return rotate(source, known[1] if isinstance(known[1], int) else None)
    rows = heads.rows(build)
    width = heads.count * heads.size
    if width != heads.width:
        rows = build.op("Slice", rows, [heads.offset], [heads.offset + width], [2])
    split = build.op("Reshape", rotate(rows, heads.count), [0, 0, heads.count, heads.size])
    split.shape = ir.Shape([known[0], known[2], heads.count, heads.size])
    result = build.op("Transpose", split, perm=[0, 2, 1, 3])
    return result


def _puts_the_rest(joined: ir.Node, node: ir.Node, x: Part) -> bool:
    """Return True if a Concat appends the elements that follow the rotated ones in their source."""
    if joined.domain != "" or joined.op_type != "Concat" or joined.graph is not node.graph or x.start != 0:
        return False
    if len(joined.inputs) != 2 or joined.inputs[0] is not node.outputs[0] or not _is_last(joined):
        return False
    return _is_rest(joined.inputs[1], x)


def _is_rest(value: ir.Value | None, x: Part) -> bool:
    wide = size_at(x.source)
    return any(p.source is x.source and (p.start, p.step, p.start + p.size) == (x.size, 1, wide) for p in parts(value))


def _is_last(node: ir.Node) -> bool:
    count = rank(node.outputs[0])
    return count is not None and attribute(node, "axis", 0) % count == count - 1


def _factors(value: ir.Value | None, user: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    node = made_by(value, "Mul")
    if node is None or value is None or only_user(value) is not user or None in node.inputs:
        return None
    return required(node.inputs[0]), required(node.inputs[1])


def _whole(node: ir.Node) -> _Rotation | None:
    """x cos + rotated(x) sin."""
    products = [_factors(value, node) for value in node.inputs]
    if products[0] is None or products[1] is None:
        return None
    for straight, crossed in ((products[0], products[1]), (products[1], products[0])):
        for at in (0, 1):
            swapped = _rotated(crossed[at])
            if swapped is None:
                continue
            first, interleaved = swapped
            for x, cos in (straight, straight[::-1]):
                rotated = _rotated_parts(first)
                if any(p in rotated for p in parts(x)):
                    whole = Part(x, 0, 2 * first.size)
                    return _Rotation([whole, *rotated], cos, crossed[1 - at], first.size, interleaved, True, node)
    return None


def _rotated_parts(first: Part) -> list[Part]:
    """Return the ranges whose first half, or every second element, `first` is."""
    size = 2 * first.size
    found = [Part(first.source, first.start, size)]
    return found + [Part(p.source, p.start + first.start, size) for p in parts(first.source)[1:] if p.step == 1]


def _is_all(part: Part) -> bool:
    return size_at(part.source) == part.size


def _rotated(value: ir.Value | None) -> tuple[Part, bool] | None:
    """For Concat(-b, a), or the same of neighbors: the part a, and whether they are neighbors."""
    node = made_by(value, "Concat")
    if node is not None:
        operands, interleaved = list(node.inputs), False
    else:
        stacked = _stacked(value)
        if stacked is None:
            return None
        (node, operands), interleaved = stacked, True
    if len(operands) != 2 or not _is_last(node):
        return None
    return _halves(operands[1], _negated(operands[0]), interleaved)


def _halves(first: ir.Value | None, second: ir.Value | None, interleaved: bool) -> tuple[Part, bool] | None:
    found = pair(first, second) if second is not None else None
    if found is None or found[0].size != found[1].size:
        return None
    a, b = found
    step, distance = (2, 1) if interleaved else (1, a.size)
    return (a, interleaved) if a.step == b.step == step and b.start - a.start == distance else None


def _negated(value: ir.Value | None) -> ir.Value | None:
    node = made_by(value, "Neg", "Mul")
    if node is None:
        return None
    if node.op_type == "Neg":
        return node.inputs[0]
    return next((node.inputs[1 - at] for at in (0, 1) if near(node.inputs[at], -1)), None)


def _stacked(value: ir.Value | None) -> tuple[ir.Node, list[ir.Value | None]] | None:
    """Return the Concat of a value […, n, 2] that is reshaped to […, 2 n], and the two parts that it stacks."""
    fold = made_by(value, "Reshape")
    node = None if fold is None else made_by(fold.inputs[0], "Concat")
    known, before = dims(value), None if fold is None else dims(fold.inputs[0])
    if node is None or known is None or before is None or len(before) != len(known) + 1:
        return None
    if not all(map(same_size, before[:-2], known[:-1])) or before[-1] != 2:
        return None
    return node, [_narrow(v) for v in node.inputs]


def _narrow(value: ir.Value | None) -> ir.Value | None:
    """[…, n, 1] → […, n]."""
    node = made_by(value, "Unsqueeze", "Reshape")
    wide, known = dims(value), None if node is None else dims(node.inputs[0])
    if node is None or wide is None or known is None or len(wide) != len(known) + 1 or wide[-1] != 1:
        return None
    return node.inputs[0] if all(map(same_size, wide[:-1], known)) else None


def _by_half(node: ir.Node) -> _Rotation | None:
    """a cos - b sin and b cos + a sin, joined by Concat, or stacked."""
    if not _is_last(node):
        return None
    operands, interleaved, last = list(node.inputs), False, node
    if len(operands) == 2 and size_at(operands[0]) == 1:
        fold = only_user(node.outputs[0])
        if fold is None or _stacked(fold.outputs[0]) is None:
            return None
        operands, interleaved, last = [_narrow(v) for v in operands], True, fold
    if len(operands) not in (2, 3):
        return None
    minus, plus = made_by(operands[0], "Sub"), made_by(operands[1], "Add")
    if minus is None or plus is None:
        return None
    left = [_factors(v, minus) for v in minus.inputs]
    right = [_factors(v, plus) for v in plus.inputs]
    if None in left or None in right:
        return None
    for a, cos in _orders(left[0]):
        for b, sin in _orders(left[1]):
            if not any(
                {b, cos} == set(one) and {a, sin} == set(other)  # type: ignore[arg-type]
                for one, other in ((right[0], right[1]), (right[1], right[0]))
            ):
                continue
            found = _halves(a, b, interleaved)
            if found is None:
                continue
            rotated, rest = _rotated_parts(found[0]), len(operands) == 3
            if rest and (rotated[0].start != 0 or not _is_rest(operands[2], rotated[0])):
                continue
            return _Rotation(rotated, cos, sin, found[0].size, interleaved, False, last, rest)
    return None


def _orders(factors: Any) -> Any:
    return factors, factors[::-1]

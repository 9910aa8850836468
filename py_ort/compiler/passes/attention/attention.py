"""softmax(q kᵀ · scale + mask) v → Attention, which never writes the scores.

Found from the Softmax. What exporters put around it is taken in: scales of the scores, of queries or of keys; caps;
masks that are added or chosen by Where; guards against rows without any key; heads made by reshapes and transposes, or
cut out of one tensor; keys and values that are repeated for groups of heads, or put behind those of earlier runs.
`attention_scores.py` takes scale, softcap and masks off; `kept_heads.py` finds repeated heads, which become
`kv_num_heads`, and the Concat with a past, which becomes past and present of the operator (who asks the Concat for its
shape gets it from the parts); `causal_masks.py` proves a mask to be causality. An Attention that is there already is
taken as well, for operands that it could read where they lie.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.compiler.layout.forms import reshape_target
from py_ort.compiler.passes.attention.attention_scores import (
    MASKED,
    Scores,
    combined_masks,
    factor_of,
    scores_of,
    stacks,
    unscaled,
    unstacked_masks,
)
from py_ort.compiler.passes.attention.causal_masks import Running, added_mask, in_rows, same_offset, truths
from py_ort.compiler.passes.attention.head_views import Heads, heads_of
from py_ort.compiler.passes.attention.kept_heads import Kept, give_present, kept, unrepeated
from py_ort.compiler.passes.match import drop, made_by, nodes_of, only_user, same_size, size_at
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import attribute, dims, origins, rank, remove, replace_value, required, scalar
from py_ort.ir.infer import infer_unknown
from py_ort.schema.dialect import ATTENTION_KEPT, ATTENTION_MASK, HEAD_SIZES, MASK_BROADCASTS, NAN_ROWS, OFFSETS

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
_HEADS = (0, 2, 1, 3)
_STACKED = 3


class Attention(Pass):
    """Fuses attention over [batch, heads, positions, size] or [batch * heads, positions, size]."""

    def __init__(self, target: Target) -> None:
        """`target` tells whether the first provider has Attention."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Fuse each Softmax between two products, then each Attention that can read its operands from rows."""
        if not self._target.has("", "Attention"):
            return 0
        fused = 0
        while found := sum(_fuse(node) for node in nodes_of(model, "Softmax")):
            fused += found
            infer_unknown(
                model.graph
            )  # a mask's size was the scores' and all that is made of them, in other layers too
        return fused + sum(_lay(node) for node in nodes_of(model, "Attention"))


def _product_after(softmax: ir.Node) -> tuple[ir.Node, list[ir.Node]] | None:
    """The product with the values, and the nodes between.

    A guard against rows of NaN (no key is seen: the result is 0), a Cast back to float16, heads stacked on the batch.
    """
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
    if product is not None and product.domain == "" and product.op_type == "Cast":
        if product.outputs[0].dtype != ir.DataType.FLOAT16:
            return None
        between, value = [*between, product], product.outputs[0]
        product = only_user(value)
    if product is not None and rank(value) == _STACKED + 1 and stacks(product):
        between, value = [*between, product], product.outputs[0]
        product = only_user(value)
    if product is None or product.domain != "" or product.op_type != "MatMul" or product.inputs[0] is not value:
        return None
    if len(product.inputs) > 2 or has_epilogue(product) or product.graph is not softmax.graph:
        return None
    return product, between


def _fuse(softmax: ir.Node) -> bool:
    after, count = _product_after(softmax), rank(softmax.inputs[0])
    if after is None or count not in (3, 4) or attribute(softmax, "axis", -1) not in (-1, count - 1):
        return False
    last, between = after
    guarded = any(node.op_type == "IsNaN" for node in between)
    scores = scores_of(softmax.inputs[0], softmax)
    if scores is None or scores.product.graph is not softmax.graph or scores.scale == 0:
        return False
    product, result = scores.product, last.outputs[0]
    operands = [*product.inputs, last.inputs[1]]
    stacked = rank(product.outputs[0]) == _STACKED
    if any(rank(v) != rank(product.outputs[0]) for v in (*operands, result)) or not _one_batch(operands):
        return False
    if any(v is None or v.dtype not in _FLOATS or v.dtype != result.dtype for v in operands):
        return False
    if required(operands[2]).const_value is not None or not isinstance(size_at(operands[0]), int):
        return False
    # The Reshapes around the operator take a size of 0 for that of their input.
    if any(0 in (dims(v) or []) for v in operands):
        return False
    heads = _stacked_heads(scores, operands) if stacked else None
    masks = unstacked_masks(scores.masks, heads) if stacked else scores.masks
    if masks is None:
        return False
    # Nothing can go wrong from here on.
    scales: list[ir.Node] = []
    scores.scale *= unscaled(operands[0], scales) * unscaled(operands[1], scales)
    for node in scales:
        replace_value(node.outputs[0], required(factor_of(node))[0])
        remove(node)
    query, transposed, value = map(required, (*product.inputs[:2], last.inputs[1]))
    inner = [product, *scores.nodes, softmax, *between, last]
    build = Builder(last, origin=[name for node in inner for name in origins(node)])
    if stacked:
        parts = _unstack(build, heads, query, transposed, value)
    else:
        sides = kept(transposed, product, True), kept(value, last, False)
        whole = Kept(transposed, transposed=True), Kept(value)
        parts = query, *(sides if same_size(sides[0].count, sides[1].count) else whole)
    attend = _Attend(build, *parts)
    masking = combined_masks(build, masks, attend.past, scores.floor, not attend.joined and not stacked)
    causal, mask = masking.causal, masking.added
    attributes = {"scale": scores.scale, "is_causal": _is_causal(causal), "softcap": scores.softcap or None}
    if mask is not None:
        attributes |= {NAN_ROWS: int(not guarded) or None, MASK_BROADCASTS: 1}
    made = attend.write(mask, attributes, None, None, _length(build, causal, attend.query), masking.kept)
    attend.give(made[0], result, stacked)
    for node in reversed(inner):
        remove(node)
    drop(transposed)
    drop(value)
    attend.give_presents(made)
    return True


def _is_causal(causal: bool | Running) -> int:
    return int(not causal.alike if isinstance(causal, Running) else causal)


def _length(build: Builder, causal: bool | Running, query: ir.Value | None) -> ir.Value | None:
    """How many keys there are for each of a batch, as far as the last query sees them."""
    if not isinstance(causal, Running) or query is None:
        return None
    start = build.op("Reshape", build.op("Cast", causal.value, to=int(ir.DataType.INT64)), [1])
    count = 1 if causal.alike else size_at(query, 2)
    if isinstance(count, int):
        total = build.op("Add", start, [count + causal.plus])
    else:
        total = build.op("Add", build.op("Add", start, build.op("Shape", query, start=2, end=3)), [causal.plus])
    if size_at(query, 0) != 1:
        total = build.op("Expand", total, build.op("Shape", query, start=0, end=1))
    return total


def _one_batch(operands: list[ir.Value | None]) -> bool:
    """Return True unless the operands' batch sizes differ."""
    first = [size_at(v, 0) for v in operands]
    return not any(isinstance(size, int) and size != other for size in first for other in first)


def _stacked_heads(scores: Scores, operands: list[ir.Value | None]) -> int | None:
    """Return the number of heads in [batch * heads, …], from the reshapes of the operands or of the scores."""
    known = [size_at(_unstacked(v), 1) for v in operands]
    known += [size_at(node.outputs[0], 1) for node in scores.nodes if rank(node.outputs[0]) == _STACKED + 1]
    return next((count for count in known if isinstance(count, int)), None)


def _unstack(
    build: Builder, heads: int | None, query: ir.Value, transposed: ir.Value, value: ir.Value
) -> tuple[ir.Value, Kept, Kept]:
    """Operands [batch * heads, …] as the [batch, heads, …] that they were made of, else as heads of a batch of one."""

    def four(three: ir.Value) -> ir.Value:
        source = _unstacked(three)
        if source is not None and size_at(source, 1) == heads:
            return source
        made: ir.Value
        if heads is None:
            made = build.op("Unsqueeze", three, [0])
            return made
        target = build.op("Concat", [-1, heads], build.op("Shape", three, start=1, end=3), axis=0)
        made = build.op("Reshape", three, target)
        batch = size_at(value, 0)
        first = batch // heads if isinstance(batch, int) else size_at(_unstacked(query), 0)
        made.shape = ir.Shape([first, heads, size_at(three, 1), size_at(three, 2)])
        return made

    def side(three: ir.Value) -> Kept:
        repeated = unrepeated(three)
        if repeated is not None and heads is not None and size_at(repeated[1].outputs[0], 2) is not None:
            return kept(three, repeated[0], False)
        source = four(three)
        if source is not _unstacked(three):
            return Kept(source)
        return kept(source, required(three.producer()), False)

    transpose = made_by(transposed, "Transpose")
    key = (
        transpose.inputs[0] if transpose is not None and tuple(attribute(transpose, "perm", ())) == (0, 2, 1) else None
    )
    sides = Kept(four(transposed), transposed=True) if key is None else side(key), side(value)
    if not same_size(sides[0].count, sides[1].count):
        sides = Kept(four(transposed), transposed=True), Kept(four(value))
    return four(query), *sides


def _unstacked(value: ir.Value | None) -> ir.Value | None:
    """For [batch * heads, …] made of [batch, heads, …]: that."""
    node = made_by(value, "Reshape")
    wide, known = (None if node is None else dims(node.inputs[0])), dims(value)
    if node is None or wide is None or known is None or len(wide) != len(known) + 1:
        return None
    return node.inputs[0] if all(map(same_size, wide[2:], known[1:])) else None


class _Attend:
    """Attention of queries [batch, heads, positions, size] over keys and values; builds the node in the best form."""

    def __init__(self, build: Builder, query: ir.Value, key: Kept, value: Kept, *, join: bool = True) -> None:
        """Choose the form: with or without the KV cache (never with it unless `join`), and in rows or by head."""
        self.build = build
        self.query, self.key, self.value = query, key, value
        self.joined = (
            join and key.joined is not None and value.joined not in (None, key.joined) and _as_long(key, value)
        )
        self.past: Any = size_at(key.past, 2) if self.joined else 0
        heads = heads_of(query), *(s.new_heads() if self.joined else s.heads() for s in (key, value))
        q, k, v = heads
        self.rows: tuple[Heads, Heads, Heads] | None = None
        if q is not None and k is not None and v is not None and q.count % k.count == 0 and k.count == v.count:
            self.rows = q, k, v

    def write(self, mask: ir.Value | None, attributes: dict[str, Any], *more: ir.Value | None, outputs: int = 1) -> Any:
        """Make the node; `more` are inputs behind the mask. Returns its outputs, the first as [batch, heads, …]."""
        build = self.build
        outputs = max(outputs, 3) if self.joined else outputs
        if self.joined:
            more = self.key.past, self.value.past, *more[2:]
        if self.rows is None:
            plain = self.key.new if self.joined else self.key.plain(build)
            value = self.value.new if self.joined else self.value.plain(build)
            made = build.op("Attention", self.query, plain, value, mask, *more, outputs=outputs, **attributes)
            made = made if isinstance(made, tuple) else (made,)
            made[0].type = self.query.type
            made[0].shape = ir.Shape([*(dims(self.query) or [])[:3], size_at(value)])
            return made
        q, k, v = self.rows
        rows = [part.rows(build) for part in self.rows]
        if not all(part.offset == 0 and part.width == part.count * part.size for part in self.rows):
            attributes = {**attributes, OFFSETS: [p.offset for p in self.rows], HEAD_SIZES: [q.size, v.size]}
        counts: dict[str, Any] = {"q_num_heads": q.count, "kv_num_heads": k.count}
        made = build.op("Attention", *rows, mask, *more, outputs=outputs, **counts, **attributes)
        made = made if isinstance(made, tuple) else (made,)
        queries = size_at(rows[0], 0), size_at(rows[0], 1)
        made[0].type, made[0].shape = self.query.type, ir.Shape([*queries, q.count * v.size])
        split = build.op("Reshape", made[0], [0, 0, q.count, v.size])
        split.shape = ir.Shape([*queries, q.count, v.size])
        return (split, *made[1:])

    def give(self, made: ir.Value, output: ir.Value, stacked: bool = False) -> None:
        """Put the result in the place of `output`; transposed back, unless readers do that anyway."""
        known = dims(made) or []
        heads_first = [known[0], known[2], known[1], known[3]] if self.rows is not None else known
        reader = only_user(output)
        if not stacked:
            self._give(made, output, heads_first)
        elif reader is not None and made_by(reader.outputs[0], "Reshape") and _has(reader.outputs[0], heads_first):
            self._give(made, reader.outputs[0], heads_first)
            remove(reader)
        else:
            wide = self.build.op("Transpose", made, perm=list(_HEADS)) if self.rows is not None else made
            target: Any = reshape_target(dims(output) or [], None)
            if target is None:
                target = self.build.op("Concat", [-1], self.build.op("Shape", wide, start=2, end=4), axis=0)
            replace_value(output, self.build.op("Reshape", wide, target))

    def _give(self, made: ir.Value, output: ir.Value, heads_first: list[Any]) -> None:
        reader = only_user(output)
        if self.rows is None:
            replace_value(output, made)
        elif reader is not None and made_by(reader.outputs[0], "Transpose") and _swaps_heads(reader):
            replace_value(reader.outputs[0], made)
            remove(reader)
        else:
            back = self.build.op("Transpose", made, perm=list(_HEADS))
            back.shape = ir.Shape(heads_first)
            replace_value(output, back)

    def give_presents(self, made: Any) -> None:
        """Let the node give the results of the Concats; the nodes that read these must be removed before."""
        if not self.joined:
            return
        for i, side in enumerate((self.key, self.value), start=1):
            if side.joined is not None and side.joined.graph is not None:
                give_present(self.build, side, made[i], None if self.rows is None else self.rows[i])


def _as_long(key: Kept, value: Kept) -> bool:
    """Return True if as many keys as values were kept: then their totals are equal, whatever their sizes are named."""
    return any(same_size(size_at(a, 2), size_at(b, 2)) for a, b in ((key.past, value.past), (key.new, value.new)))


def _has(value: ir.Value, wanted: list[Any]) -> bool:
    known = dims(value) or []
    return len(known) == len(wanted) and all(map(same_size, known, wanted))


def _swaps_heads(node: ir.Node) -> bool:
    return tuple(attribute(node, "perm", ())) == _HEADS


def _lay(node: ir.Node) -> bool:
    """Let an Attention on [batch, heads, positions, size] read its operands from rows, without transposes."""
    if len(node.inputs) < 3 or any(rank(v) != 4 or v is None or v.const_value is not None for v in node.inputs[:3]):
        return False
    query, key, value = map(required, node.inputs[:3])
    more = node.inputs[ATTENTION_MASK:]
    mask = more[0] if more else None
    causal = bool(attribute(node, "is_causal", 0))
    build = Builder(node)
    sides = kept(key, node, False), kept(value, node, False)
    if key is value or query in (key, value) or not same_size(sides[0].count, sides[1].count):
        sides = Kept(key), Kept(value)
    # Without a past, a causal mask begins at the first key.
    open_end = not causal and all(v is None for v in more[1:]) and not any(o.uses() for o in node.outputs[1:])
    attend = _Attend(build, query, *sides, join=open_end)
    past = size_at(more[1], 2) if len(more) > 1 and more[1] is not None else attend.past
    becomes_causal = (
        mask is not None
        and not causal
        and len(more) <= ATTENTION_KEPT - ATTENTION_MASK
        and _masks_the_future(mask, past, size_at(query, 2), open_end and not attend.joined)
    )
    repeated = any(side.value is not given for side, given in zip(sides, (key, value), strict=True))
    if attend.rows is None and not (attend.joined or repeated or becomes_causal):
        return False
    attributes = {n: item.value for n, item in node.attributes.items() if n not in ("q_num_heads", "kv_num_heads")}
    if becomes_causal:
        attributes["is_causal"] = _is_causal(becomes_causal)
    more = [None, None, None, _length(build, becomes_causal, query)] if isinstance(becomes_causal, Running) else more
    made = attend.write(None if becomes_causal else mask, attributes, *more[1:], outputs=len(node.outputs))
    attend.give(made[0], node.outputs[0])
    for old, new in zip(node.outputs[1:], made[1:], strict=False):
        new.type, new.shape = old.type, old.shape
        replace_value(old, new)
    remove(node)
    drop(key)
    drop(value)
    attend.give_presents(made)
    return True


def _masks_the_future(mask: ir.Value, past: Any, queries: Any, running: bool) -> bool | Running:
    """Return True if a mask only hides the keys after a query's own position.

    With `running`, that position may be what a run computes.
    """
    if mask.dtype == ir.DataType.BOOL:
        found = truths(mask)
        offset = found.offset if found is not None and found.inside else None
    else:
        added = added_mask(mask)
        offset = added[0] if added is not None and added[1] <= MASKED else None
    offset = in_rows(offset, mask, queries)
    return offset if running and isinstance(offset, Running) else same_offset(offset, past)

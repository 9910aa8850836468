"""GroupQueryAttention whose caches are quantized, or slide: rewritten to one with plain caches.

Quantized rows are whole numbers, times a scale for each channel or for all. Attention runs on these numbers as they
are: the queries are multiplied by the keys' scale before, what comes out by the values' scale after.

A cache that slides keeps the last rows only: as many as there are, up to its capacity, then all but as many as slide
out at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims
from py_ort.ir.operators import MICROSOFT, lowering

_MODES = ("PER_TENSOR", "PER_CHANNEL")
_FLOAT = ir.DataType.FLOAT
_INT32, _INT64 = int(ir.DataType.INT32), int(ir.DataType.INT64)
_OURS = (*("k_quant_type", "v_quant_type", "kv_cache_bit_width"), *("sliding_window_cache", "do_rotary"))


@dataclass(frozen=True)
class _Rows:
    """Queries, keys and values [batch, rows, width], how long the caches are, and what else there is to know."""

    query: Any
    key: Any
    value: Any
    past: tuple[Any, Any]
    lengths: Any
    total: Any
    bias: Any
    heads: int
    kv_heads: int
    size: int


@lowering("GroupQueryAttention", domain=MICROSOFT)
def plain_caches(node: ir.Node, build: Builder) -> Any:
    """Rotation comes before rows are quantized, and looks at places in all of the text, so it is done apart, too."""
    slides, mode = attribute(node, "sliding_window_cache", 0), attribute(node, "k_quant_type", "NONE")
    bits = attribute(node, "kv_cache_bit_width", 0)
    if not (slides or mode in _MODES) or not _known(node, bool(slides), mode, bits):
        return None
    given = _Inputs(node)
    rows = _split(given, build, node)
    if rows is None:
        return None
    if attribute(node, "do_rotary", 0):
        rows = _rotated(rows, build, given, attribute(node, "rotary_interleaved", 0))
    scales = (None, None)
    if mode in _MODES:
        channels = mode == "PER_CHANNEL"
        scales = tuple(_scale(build, given[12 + i], rows, channels) for i in (0, 1))
        rows = _quantized(rows, build, scales, bits)
    kept = None
    if slides:
        rows, kept = _sliding(rows, build, attribute(node, "local_window_size"))
    inner = {name: item for name, item in attributes_of(node).items() if name not in _OURS}
    inputs = [rows.query, rows.key, rows.value, *rows.past, rows.lengths, rows.total, None, None, None, rows.bias]
    made = build.op(
        "GroupQueryAttention",
        *inputs,
        given[11],
        domain=MICROSOFT,
        outputs=max(len(node.outputs), 3),
        **inner,
    )
    y, *caches = made[:3]
    if kept is not None:
        caches = [kept.of(build, cache, rows.size) for cache in caches]
    if mode in _MODES:
        y = _scaled(build, y, _for_queries(build, scales[1], rows))
        caches = [_packed(build, cache, bits, rows.size) for cache in caches]
    return (y, *caches, *made[3:])[: len(node.outputs)]


class _Inputs:
    def __init__(self, node: ir.Node) -> None:
        self._node = node

    def __getitem__(self, index: int) -> ir.Value | None:
        return self._node.inputs[index] if index < len(self._node.inputs) else None


def _known(node: ir.Node, slides: bool, mode: str, bits: int) -> bool:
    """Return True if onnxruntime has the form, too."""
    given = _Inputs(node)
    if given[14] is not None or given[15] is not None:
        return False
    if mode in _MODES:
        wanted = {8: ir.DataType.INT8, 4: ir.DataType.UINT8}.get(bits)
        caches = [value for value in (given[3], given[4]) if value is not None]
        if mode != attribute(node, "v_quant_type", "NONE") or any(cache.dtype != wanted for cache in caches):
            return False
        if wanted is None or given[12] is None or given[13] is None:
            return False
    if slides:
        both = given[3] is not None and given[4] is not None
        return both and attribute(node, "local_window_size", -1) > 0 and len(node.outputs) <= 3
    return True


def _split(given: _Inputs, build: Builder, node: ir.Node) -> _Rows | None:
    query, key, value = (given[i] for i in range(3))
    heads, kv_heads = attribute(node, "num_heads"), attribute(node, "kv_num_heads")
    known = dims(query)
    if known is None or not isinstance(known[2], int):
        return None
    size = known[2] // (heads if key is not None else heads + 2 * kv_heads)
    if key is None:
        widths = np.array([heads * size, kv_heads * size, kv_heads * size])
        query, key, value = build.op("Split", query, widths, axis=-1, outputs=3)
    return _Rows(
        query,
        key,
        value,
        (given[3], given[4]),
        given[5],
        given[6],
        given[10],
        heads=heads,
        kv_heads=kv_heads,
        size=size,
    )


def _int32(build: Builder, number: int) -> Any:
    return build.constant(np.array([number], np.int32))


def _count(build: Builder, value: Any, axis: int) -> Any:
    """The size of an axis, [1] of int32."""
    return build.op("Cast", build.op("Shape", value, start=axis, end=axis + 1), to=_INT32)


def _alone(build: Builder, value: Any) -> Any:
    """One number as [1]."""
    return build.op("Reshape", value, np.array([1]))


def _ends(rows: _Rows, build: Builder) -> tuple[Any, Any, Any]:
    """New rows of each batch, whether nothing precedes them, and how many rows each batch has with them, [batch]."""
    count = _count(build, rows.query, 1)
    first = build.op("Equal", _alone(build, rows.total), count)
    ends = build.op("Add", build.op("Reshape", rows.lengths, np.array([-1])), _int32(build, 1))
    return count, first, ends


def _places(build: Builder, count: Any) -> Any:
    """0, 1, … as int32."""
    scalar = build.op("Reshape", count, np.array([], np.int64))
    return build.op("Range", np.array(0, np.int32), scalar, np.array(1, np.int32))


def _rotated(rows: _Rows, build: Builder, given: _Inputs, interleaved: int) -> _Rows:
    """Where nothing precedes, rows follow the first position, as in onnxruntime."""
    count, first, ends = _ends(rows, build)
    following = _places(build, count)
    if given[9] is None:
        begin = build.op("Where", first, _int32(build, 0), build.op("Sub", ends, count))
        positions = build.op("Add", build.op("Unsqueeze", begin, np.array([1])), following)
    else:
        each = build.op("Cast", given[9], to=_INT32)
        start = build.op("Slice", build.op("Reshape", each, np.array([-1])), np.array([0]), np.array([1]))
        positions = build.op("Where", first, build.op("Add", start, following), each)
    positions = build.op("Cast", positions, to=_INT64)

    def rotated(x: Any, heads: int) -> Any:
        angles = (given[7], given[8])
        known = dims(given[7])
        part = known[1] if known is not None and isinstance(known[1], int) else rows.size // 2
        kept = {"num_heads": heads, "rotary_embedding_dim": 2 * part} if 2 * part != rows.size else {"num_heads": heads}
        return build.op("RotaryEmbedding", x, positions, *angles, domain=MICROSOFT, interleaved=interleaved, **kept)

    return replace(rows, query=rotated(rows.query, rows.heads), key=rotated(rows.key, rows.kv_heads))


def _scale(build: Builder, scale: Any, rows: _Rows, channels: bool) -> Any:
    """As a row [1], or [heads * size] of keys and values, in float32."""
    return _cast(build, build.op("Reshape", scale, np.array([rows.kv_heads * rows.size if channels else 1])), _FLOAT)


def _cast(build: Builder, value: Any, dtype: ir.DataType) -> Any:
    return value if value.dtype == dtype else build.op("Cast", value, to=int(dtype))


def _scaled(build: Builder, rows: Any, scale: Any) -> Any:
    return _cast(build, build.op("Mul", _cast(build, rows, _FLOAT), scale), rows.dtype)


def _for_queries(build: Builder, scale: Any, rows: _Rows) -> Any:
    """Heads that share keys and values share their scales."""
    if dims(scale) == [1] or rows.heads == rows.kv_heads:
        return scale
    shared = [rows.kv_heads, rows.heads // rows.kv_heads, rows.size]
    each = build.op("Reshape", scale, np.array([rows.kv_heads, 1, rows.size]))
    return build.op("Reshape", build.op("Expand", each, np.array(shared)), np.array([-1]))


def _quantized(rows: _Rows, build: Builder, scales: tuple[Any, ...], bits: int) -> _Rows:
    """New rows as whole numbers, the old ones brought into their type."""
    dtype = rows.query.dtype
    low, high = (build.constant(np.array(limit, np.float32)) for limit in (-(1 << bits - 1), (1 << bits - 1) - 1))

    def whole(x: Any, scale: Any) -> Any:
        steps = build.op("Div", _cast(build, x, _FLOAT), scale)
        return _cast(build, build.op("Clip", build.op("Round", steps), low, high), dtype)

    key, value = whole(rows.key, scales[0]), whole(rows.value, scales[1])
    past_key, past_value = (
        None if cache is None else _unpacked(build, cache, bits, rows.size, dtype) for cache in rows.past
    )
    query = _scaled(build, rows.query, _for_queries(build, scales[0], rows))
    return replace(rows, query=query, key=key, value=value, past=(past_key, past_value))


def _unpacked(build: Builder, cache: Any, bits: int, size: int, dtype: ir.DataType) -> Any:
    """Numbers of 4 bits: two in a byte, the first one in the lower half, with 8 added."""
    numbers = build.op("Cast", cache, to=int(dtype))
    if bits == 8:
        return numbers
    sixteen, eight = (build.constant(np.array(n, dtype.numpy())) for n in (16, 8))
    upper = build.op("Floor", build.op("Div", numbers, sixteen))
    lower = build.op("Sub", numbers, build.op("Mul", upper, sixteen))
    pairs = build.op("Concat", *(build.op("Unsqueeze", half, np.array([4])) for half in (lower, upper)), axis=4)
    return build.op("Sub", build.op("Reshape", pairs, np.array([0, 0, 0, size])), eight)


def _packed(build: Builder, cache: Any, bits: int, size: int) -> Any:
    if bits == 8:
        return build.op("Cast", cache, to=int(ir.DataType.INT8))
    dtype = cache.dtype.numpy()
    pairs = build.op("Reshape", cache, np.array([0, 0, 0, size // 2, 2]))
    lower, upper = (build.op("Gather", pairs, np.array(i), axis=4) for i in (0, 1))
    joined = build.op("Add", lower, build.op("Mul", upper, build.constant(np.array(16, dtype))))
    # 8 for each half.
    moved = build.op("Add", joined, build.constant(np.array(8 * 17, dtype)))
    return build.op("Cast", moved, to=int(ir.DataType.UINT8))


@dataclass(frozen=True)
class _Kept:
    """The part of each batch's rows that stays: `capacity` ([1]) of them from `first` ([batch]) on."""

    first: Any
    capacity: Any

    def of(self, build: Builder, cache: Any, size: int) -> Any:
        """Take it out of a cache [batch, heads, rows, size]."""
        heads, rows = _count(build, cache, 1), _count(build, cache, 2)
        lists = _lists(build, _count(build, cache, 0), heads, rows, self.first, self.capacity)
        return build.op("Gather", build.op("Reshape", cache, np.array([-1, size])), lists, axis=0)


def _lists(build: Builder, batch: Any, parts: Any, rows: Any, first: Any, count: Any) -> Any:
    """Numbers of rows in [batch, parts, rows]: `count` from each batch's `first` on, [batch, parts, count]."""
    within = build.op("Add", build.op("Unsqueeze", first, np.array([1])), _places(build, count))
    within = build.op("Min", build.op("Max", within, _int32(build, 0)), build.op("Sub", rows, _int32(build, 1)))
    before = build.op(
        "Add",
        build.op("Unsqueeze", build.op("Mul", _places(build, batch), parts), np.array([1])),
        _places(build, parts),
    )
    starts = build.op("Unsqueeze", build.op("Mul", before, rows), np.array([2]))
    return build.op("Add", starts, build.op("Unsqueeze", within, np.array([1])))


def _sliding(rows: _Rows, build: Builder, window: int) -> tuple[_Rows, _Kept]:
    """The rows that are left of those that came before, then the new ones; of these a part stays."""
    count, _, ends = _ends(rows, build)
    capacity = _count(build, rows.past[0], 2)
    leaving = build.op("Sub", capacity, _int32(build, window - 1))  # at once

    def left(positions: Any) -> Any:
        beyond = build.op("Max", build.op("Sub", positions, capacity), _int32(build, 0))
        rounded = build.op("Add", beyond, build.op("Sub", leaving, _int32(build, 1)))
        return build.op("Sub", positions, build.op("Mul", build.op("Div", rounded, leaving), leaving))

    before = build.op("Max", build.op("Sub", ends, count), _int32(build, 0))
    old = left(before)
    gone = build.op("Sub", before, old)
    all_rows = build.op("Sub", ends, gone)
    total = build.op("Add", build.op("Min", build.op("Sub", _alone(build, rows.total), count), capacity), count)
    bias = rows.bias
    if bias is not None:  # of all positions of the text
        parts = build.op("Mul", _count(build, bias, 1), _count(build, bias, 2))
        lists = _lists(build, _count(build, bias, 0), parts, _count(build, bias, 3), gone, total)
        shape = build.op(
            "Concat", build.op("Shape", lists, end=1), build.op("Shape", bias, start=1, end=3), np.array([-1]), axis=0
        )
        bias = build.op("Reshape", build.op("Gather", build.op("Reshape", bias, np.array([-1])), lists), shape)
    lengths = build.op("Sub", all_rows, _int32(build, 1))
    kept = _Kept(build.op("Sub", all_rows, left(ends)), capacity)
    return replace(rows, lengths=lengths, total=total, bias=bias), kept

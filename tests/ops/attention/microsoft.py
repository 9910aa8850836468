"""com.microsoft's attention operators, compared with onnxruntime."""

import numpy as np
from case import MICROSOFT, Case, Input, r

BATCH, ROWS, HEADS, SIZE = 2, 5, 3, 8
HIDDEN = HEADS * SIZE
MHA = {"num_heads": HEADS}
GQA = {"num_heads": 4, "kv_num_heads": 2}


def _i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def _mha(columns: int, *more: Input, name: str, outputs: int = 1, **attributes: object) -> Case:
    inputs = [r(BATCH, ROWS, HIDDEN), r(BATCH, columns, HIDDEN), r(BATCH, columns, HIDDEN), *more]
    return _microsoft("MultiHeadAttention", inputs, name, outputs, **{**MHA, **attributes})


def _microsoft(op: str, inputs: list[Input], name: str, outputs: int = 1, **attributes: object) -> Case:
    return Case(op, inputs, attributes, domain=MICROSOFT, tolerance="normal", outputs=outputs, name=name)


def _gqa(
    name: str,
    rows: int,
    past: int,
    lengths: tuple[int, ...],
    total: int,
    *more: Input,
    packed: bool = False,
    heads: tuple[int, int, int] = (4, 2, 16),
    **attributes: object,
) -> Case:
    """`heads`: number of query heads, of key and value heads, and their size; `lengths` minus one, as seqlens_k."""
    batch, (queries, keys, size) = len(lengths), heads
    columns = [(queries + 2 * keys) * size] if packed else [queries * size, keys * size, keys * size]
    inputs: list[Input] = [r(batch, rows, width) for width in columns]
    inputs += [None] * (3 - len(inputs))
    inputs += [r(batch, keys, past, size)] * 2 if past else [None, None]
    attributes = {"num_heads": queries, "kv_num_heads": keys, **attributes}
    return _microsoft("GroupQueryAttention", [*inputs, _i32(*lengths), _i32(total), *more], name, 3, **attributes)


_ANGLES = np.arange(24, dtype=np.float32)[:, None] / np.array([1, 3, 10, 30, 100, 300, 1000, 3000], np.float32)
COS, SIN = np.cos(_ANGLES), np.sin(_ANGLES)
ROTATED = {"do_rotary": 1}
NEAR = {"do_rotary": 1, "rotary_interleaved": 1}
PLACES = np.array([[3, 4, 9, 11, 2], [0, 1, 2, 3, 5]], np.int64)
GROUPED = [
    _gqa("prompt", 5, 0, (4, 4), 5),
    _gqa("prompt-packed", 5, 0, (4, 4), 5, packed=True),
    _gqa("prompt-in-cache", 5, 20, (4, 4), 5),
    _gqa("prompt-rotated", 5, 0, (4, 4), 5, COS, SIN, **ROTATED),
    _gqa("prompt-packed-rotated", 5, 0, (4, 4), 5, COS, SIN, packed=True, **NEAR),
    _gqa("token", 1, 6, (6, 6), 7),
    _gqa("token-ragged", 1, 6, (6, 3), 7, COS, SIN, **ROTATED),
    _gqa("token-in-cache", 1, 20, (6, 3), 7, COS, SIN, packed=True, **ROTATED),
    _gqa("token-long", 1, 300, (280, 130), 281, heads=(6, 2, 64)),
    _gqa("rows-long", 3, 300, (290,), 291, heads=(6, 6, 32), local_window_size=100),
    _gqa("rows", 3, 20, (8,), 9, COS, SIN, **NEAR),
    _gqa("prompt-positions", 5, 0, (4, 4), 5, COS, SIN, PLACES, **ROTATED),
    _gqa("positions", 1, 6, (6, 3), 7, COS, SIN, PLACES[:, 3:4], **ROTATED),
    _gqa("bias", 5, 0, (4, 4), 5, None, None, None, r(2, 4, 5, 5)),
    _gqa("bias-in-cache", 1, 20, (6, 6), 7, None, None, None, r(1, 1, 1, 7)),
    _gqa("sink", 5, 0, (4, 4), 5, None, None, None, None, r(4)),
    _gqa("sink-long", 1, 300, (280, 280), 281, None, None, None, None, r(4)),
    _gqa("smooth", 5, 0, (4, 4), 5, smooth_softmax=1, scale=0.7),
    _gqa("softcap", 5, 0, (4, 4), 5, softcap=1.5),
    _gqa("not-causal", 5, 0, (4, 4), 5, causal=0),
    _gqa("not-causal-rows", 3, 20, (8,), 9, causal=0),
    _gqa("window", 1, 20, (6, 3), 7, local_window_size=3),
    _gqa("window-prompt", 5, 0, (4, 4), 5, local_window_size=2),
]

MASK = np.array([[1, 1, 0, 1, 1, 0, 1], [0] * 7], np.int32)
PAST = r(BATCH, HEADS, 4, SIZE)
CACHE = r(BATCH, HEADS, 12, SIZE)
BEAMS = np.random.default_rng(1).integers(0, 2, (2, 2, 9)).astype(np.int32)
CROSS = [r(BATCH, ROWS, HIDDEN), r(BATCH, HEADS, 7, SIZE), r(BATCH, HEADS, 7, SIZE)]
MULTI_HEAD = [
    _mha(5, name="plain"),
    _mha(7, r(3 * HIDDEN), name="bias"),
    _mha(7, None, _i32(7, 5), name="lengths"),
    _mha(7, None, _i32(7, 5, 0, 5, 10, 0, 7, 12), name="lengths-and-sums"),
    _mha(7, None, MASK, name="mask"),
    _mha(7, None, MASK, mask_filter_value=-3.0, name="soft-mask"),
    _mha(7, None, r(BATCH, ROWS, 7, dtype="int32", low=0, high=2), name="mask-of-rows"),
    _mha(7, None, None, r(1, HEADS, ROWS, 7), name="scores"),
    _mha(5, name="causal", unidirectional=1, scale=0.3),
    _microsoft(
        "MultiHeadAttention",
        [r(BATCH, 1, HIDDEN), *[r(BATCH, 7, HIDDEN)] * 2],
        "one-query-causal",
        unidirectional=1,
        **MHA,
    ),
    _mha(5, None, None, None, PAST, PAST, name="past", outputs=3),
    _mha(5, r(3 * HIDDEN), np.eye(2, 9, dtype=np.int32), r(BATCH, 1, ROWS, 9), PAST, PAST, name="past-all", outputs=3),
    _mha(5, None, None, None, PAST, PAST, name="past-causal", outputs=3, unidirectional=1),
    _mha(5, name="present", outputs=3),
    _mha(5, r(3 * HIDDEN), None, None, CACHE, CACHE, _i32(4), name="cache", outputs=3, unidirectional=1),
    _mha(5, None, None, None, CACHE, CACHE, _i32(0), name="cache-empty", outputs=3),
    _microsoft(
        "MultiHeadAttention",
        [*[r(4, 1, HIDDEN)] * 3, None, None, None, *[r(4, HEADS, 9, SIZE)] * 2, _i32(6), BEAMS],
        "beams",
        3,
        **MHA,
    ),
    _microsoft("MultiHeadAttention", [*CROSS, r(3 * HIDDEN)], "cross", **MHA),
    _microsoft("MultiHeadAttention", [*CROSS, None, None, None, PAST, PAST], "cross-past", 3, **MHA),
    _microsoft(
        "MultiHeadAttention",
        [*CROSS[:1], r(BATCH, 7, HIDDEN), r(BATCH, 7, HEADS * 4), r(2 * HIDDEN + HEADS * 4)],
        "sizes",
        **MHA,
    ),
]


def _plain(heads: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention over [batch, rows, heads, size]."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)
    return y.reshape(*q.shape[:2], -1).astype(np.float32)


def _packed(qkv: np.ndarray, *more: np.ndarray | None) -> np.ndarray:
    """All three in one tensor; the bias has its parts one after another."""
    bias = more[-1] if more else None
    moved = 0 if bias is None else bias.reshape(3, HEADS, SIZE).transpose(1, 0, 2)
    q, k, v = np.moveaxis(qkv + moved, 3, 0)
    return _plain(HEADS, q, k, v)


def _packed_pair(query: np.ndarray, kv: np.ndarray, *more: np.ndarray | None) -> np.ndarray:
    bias = np.zeros(3 * HIDDEN) if not more else more[-1].reshape(-1)  # type: ignore[union-attr]
    k, v = np.moveaxis(kv + bias[HIDDEN:].reshape(2, HEADS, SIZE).transpose(1, 0, 2), 3, 0)
    return _plain(HEADS, (query + bias[:HIDDEN]).reshape(*query.shape[:2], HEADS, SIZE), k, v)


#: Forms that onnxruntime has only on GPUs.
PACKED = [
    Case("MultiHeadAttention", inputs, MHA, expected, tolerance="normal", domain=MICROSOFT, name="in-one")
    for inputs, expected in (
        ([r(BATCH, ROWS, HEADS, 3, SIZE)], _packed),
        ([r(BATCH, ROWS, HEADS, 3, SIZE), None, None, r(3 * HIDDEN)], _packed),
        ([r(BATCH, ROWS, HIDDEN), r(BATCH, 7, HEADS, 2, SIZE)], _packed_pair),
        ([r(BATCH, ROWS, HIDDEN), r(BATCH, 7, HEADS, 2, SIZE), None, r(3 * HIDDEN)], _packed_pair),
    )
]


def _whole(name: str, *more: Input, outputs: int = 1, **attributes: object) -> Case:
    inputs: list[Input] = [r(BATCH, ROWS, 16), r(16, 3 * HIDDEN), r(3 * HIDDEN), *more]
    attributes = {**MHA, **attributes}
    return Case("Attention", inputs, attributes, domain=MICROSOFT, tolerance="loose", outputs=outputs, name=name)


BEFORE = r(2, BATCH, HEADS, 4, SIZE)
WHOLE = [
    _whole("causal", unidirectional=1),
    _whole("lengths", _i32(5, 3)),
    _whole("ranges", _i32(5, 4, 0, 2)),
    _whole("mask", np.eye(2, 5, dtype=np.int32)),
    _whole("mask-of-rows", r(BATCH, ROWS, ROWS, dtype="int32", low=0, high=2), unidirectional=1),
    _whole("no-mask", np.zeros((BATCH, 1), np.int32)),
    _whole("scores", None, None, r(1, HEADS, ROWS, ROWS)),
    _whole("past", None, BEFORE, outputs=2),
    _whole("past-causal", _i32(9, 6, 1, 2), BEFORE, outputs=2, unidirectional=1),
    _whole("present", outputs=2),
]

CASES = [
    *GROUPED,
    *MULTI_HEAD,
    *PACKED,
    *WHOLE,
    Case(
        "RotaryEmbedding",
        [r(2, 5, 48), np.array([3], np.int64), COS, SIN],
        {"interleaved": 1},
        domain=MICROSOFT,
        tolerance="normal",
    ),
]

"""com.microsoft's attentions and what belongs to them, against onnxruntime."""

import numpy as np
from case import MICROSOFT, Case, r

BATCH, ROWS, HEADS, SIZE = 2, 5, 3, 8
HIDDEN = HEADS * SIZE
MHA = {"num_heads": HEADS}
GQA = {"num_heads": 4, "kv_num_heads": 2}


def _mha(columns: int, *more: object, name: str = "", outputs: int = 1, **attributes: object) -> Case:
    inputs = [r(BATCH, ROWS, HIDDEN), r(BATCH, columns, HIDDEN), r(BATCH, columns, HIDDEN), *more]
    return Case(
        "MultiHeadAttention",
        inputs,
        {**MHA, **attributes},
        domain=MICROSOFT,
        tolerance="loose",
        outputs=outputs,
        name=name,
    )  # type: ignore[arg-type]


def _gqa(rows: int, past: int, name: str, *more: np.ndarray, batch: int = 2, **attributes: object) -> Case:
    cache = [r(batch, 2, past, 16)] * 2 if past else [None, None]
    lengths = [np.full(batch, past + rows - 1, np.int32), np.array([past + rows], np.int32)]
    inputs = [r(batch, rows, 64), r(batch, rows, 32), r(batch, rows, 32), *cache, *lengths, *more]
    return Case(
        "GroupQueryAttention", inputs, {**GQA, **attributes}, domain=MICROSOFT, tolerance="loose", outputs=3, name=name
    )


_ANGLES = np.arange(20, dtype=np.float32)[:, None] / np.array([1, 3, 10, 30, 100, 300, 1000, 3000], np.float32)
COS, SIN = np.cos(_ANGLES), np.sin(_ANGLES)

CASES = [
    _mha(5, name="plain"),
    _mha(7, r(3 * HIDDEN), name="bias"),
    _mha(7, None, np.array([7, 5], np.int32), name="lengths"),
    _mha(7, None, np.array([[1, 1, 0, 1, 1, 0, 1], [1] * 7], np.int32), name="mask"),
    _mha(7, None, None, r(1, HEADS, ROWS, 7), name="scores"),
    _mha(5, name="causal", unidirectional=1, scale=0.3),
    _mha(5, None, None, None, r(BATCH, HEADS, 4, SIZE), r(BATCH, HEADS, 4, SIZE), name="past", outputs=3),
    Case(
        "Attention",
        [r(2, 5, 16), r(16, 3 * HIDDEN), r(3 * HIDDEN)],
        {**MHA, "unidirectional": 1},
        domain=MICROSOFT,
        tolerance="loose",
    ),
    Case(
        "Attention",
        [r(2, 5, 16), r(16, 3 * HIDDEN), r(3 * HIDDEN), None, r(2, 2, HEADS, 4, SIZE)],
        MHA,
        domain=MICROSOFT,
        tolerance="loose",
        outputs=2,
    ),
    _gqa(5, 0, "prompt"),
    _gqa(1, 6, "token"),
    _gqa(5, 0, "prompt-rotated", COS, SIN, do_rotary=1),
    _gqa(1, 6, "token-rotated", COS, SIN, do_rotary=1, rotary_interleaved=1, batch=1),
    _gqa(1, 6, "window", local_window_size=3),
    Case(
        "RotaryEmbedding",
        [r(2, 5, 48), np.array([3], np.int64), COS, SIN],
        {"interleaved": 1},
        domain=MICROSOFT,
        tolerance="normal",
    ),
]

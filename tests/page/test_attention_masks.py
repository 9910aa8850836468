"""Masks whose sizes are known only in a run: they broadcast to the scores, as natively, or are refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from graphs import compiled, operators, parse
from same_values import assert_same
from standard_form import run_native

from py_ort.exceptions import PyOrtError

RNG = np.random.default_rng(2)
BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 3, 6, 9, 8
WIDTH = HEADS * SIZE
WEIGHTS = {f"w{name}": RNG.standard_normal((WIDTH, WIDTH)).astype(np.float32) * 0.3 for name in "qkv"}
NUMBERS = {
    "heads": np.array([0, 0, HEADS, SIZE]),
    "flat": np.array([0, 0, WIDTH]),
    "scale": np.float32(0.35),
    "low": np.float32(-1e4),
    "lower": np.float32(-3e4),
}
#: by the form of a mask: shapes that native runs, and shapes that it refuses
SHAPES: dict[str, tuple[list[tuple[int, ...]], list[tuple[int, ...]]]] = {
    "a,d": (
        [(QUERIES, KEYS), (QUERIES, 1), (1, KEYS), (1, 1)],
        [(QUERIES, KEYS - 1), (QUERIES, KEYS + 2), (QUERIES - 1, KEYS)],
    ),
    "h,a,d": ([(HEADS, 1, 1), (HEADS, QUERIES, 1), (1, 1, KEYS)], [(HEADS - 1, 1, KEYS)]),
    "e,h,a,d": (
        [
            (BATCH, HEADS, QUERIES, KEYS),
            (BATCH, 1, 1, KEYS),
            (BATCH, 1, QUERIES, 1),
            (1, 1, 1, 1),
            (BATCH, HEADS, 1, 1),
        ],
        [(BATCH, 1, 1, KEYS - 1), (BATCH, 1, 1, KEYS + 2), (BATCH, 1, 2, KEYS), (3, 1, 1, KEYS), (BATCH, 2, 1, KEYS)],
    ),
}
MASKS = {
    "added": ("float[{}] mask", "m = Add(c, mask)"),
    "chosen": ("bool[{}] mask", "m = Where(mask, c, low)"),
    "chosen the other way": ("bool[{}] mask", "m = Where(mask, low, c)"),
    "twice": ("bool[{}] mask, float[1,d] more", "a = Where(mask, c, low) m = Add(more, a)"),
    "thrice": (
        "bool[{}] mask, float[1,d] more",
        "x1 = Add(c, more) x2 = Where(mask, x1, low) x3 = Not(mask) x4 = Add(x2, more) m = Where(x3, lower, x4)",
    ),
}


def _model(declared: str, mask: str) -> Any:
    given, steps = MASKS[mask]
    split = "  ".join(f"{n}0 = MatMul({'x' if n == 'q' else 'z'}, w{n})  {n}1 = Reshape({n}0, heads)" for n in "qkv")
    return parse(
        f"""g (float[b,q,{WIDTH}] x, float[b,k,{WIDTH}] z, {given.format(declared)}) => (float[b,q,{WIDTH}] y) {{
        {split}
        q2 = Transpose<perm=[0,2,1,3]>(q1)  k2 = Transpose<perm=[0,2,3,1]>(k1)  v2 = Transpose<perm=[0,2,1,3]>(v1)
        s = MatMul(q2, k2)  c = Mul(s, scale)  {steps}  p = Softmax<axis=-1>(m)  o = MatMul(p, v2)
        r = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(r, flat) }}""",
        {**WEIGHTS, **NUMBERS},
    )


def _feeds(shape: tuple[int, ...], mask: str, batch: int = BATCH, queries: int = QUERIES) -> dict[str, Any]:
    feeds: dict[str, Any] = {
        "x": RNG.standard_normal((batch, queries, WIDTH)).astype(np.float32),
        "z": RNG.standard_normal((batch, KEYS, WIDTH)).astype(np.float32),
        "mask": (RNG.standard_normal(shape) * 3).astype(np.float32) if mask == "added" else RNG.random(shape) < 0.6,
    }
    if "more" in MASKS[mask][0]:
        feeds["more"] = np.where(RNG.random((1, KEYS)) < 0.5, np.float32(-1e4), np.float32(0))
    if mask != "added":
        # A row without any key.
        feeds["mask"].reshape(-1, *shape[-2:])[-1, -1] = mask == "chosen the other way"
    return feeds


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("declared", SHAPES)
def test_as_native(new_session, declared, mask, provider):
    model = _model(declared, mask)
    session = new_session(model, providers=[provider])
    assert operators(compiled(model, providers=[provider, "wasm"]))["Attention"] == 1
    fitting, others = SHAPES[declared]
    for shape in fitting:
        feeds = _feeds(shape, mask)
        # At -1e4 native rounds sums to 1e-3.
        assert_same(session.run(None, feeds), run_native(model, feeds), rtol=2e-3, atol=2e-3)
    for shape in others:
        with pytest.raises(PyOrtError, match=r"mask|broadcast"):
            session.run(None, _feeds(shape, mask))


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("mask", MASKS)
def test_scores_broadcast_to_the_mask(new_session, mask, provider):
    model = _model("e,h,a,d", mask)
    session = new_session(model, providers=[provider])
    for shape, queries in product(((3, 1, 1, KEYS), (3, HEADS, QUERIES, KEYS), (1, 1, QUERIES, 1)), (1, QUERIES)):
        feeds = _feeds(shape, mask, 1, queries)
        assert_same(session.run(None, feeds), run_native(model, feeds), rtol=2e-3, atol=2e-3)

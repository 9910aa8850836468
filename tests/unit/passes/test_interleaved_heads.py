"""Queries, keys and values of each head side by side in one projection: attention reads them in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse

D, H, S = 12, 3, 4  # the width of x, heads, and their size
ROWS = "p = MatMul(x, w)  r = Add(p, bias)"
SWAP = "Transpose<perm=[0,2,1,3]>"
SPLIT = f"h = Reshape(r, four)  a, b, c = Split<axis=-1, num_outputs=3>(h)  q = {SWAP}(a)  k = {SWAP}(b)  v = {SWAP}(c)"
SLICES = "q = Slice(t, n0, n4, n3)  k = Slice(t, n4, n8, n3)  v = Slice(t, n8, n12, n3)"
GATHER = "a = Gather<axis=3>(h, i0)  b = Gather<axis=3>(h, i1)  c = Gather<axis=3>(h, i2)"
ATTEND = f"y4 = Attention(q, k, v)  y3 = {SWAP}(y4)  y = Reshape(y3, flat)"
ONE = {"MatMul": 1, "Attention": 1}
# id: (nodes, remaining operators besides reshapes)
FORMS: dict[str, tuple[str, dict[str, int]]] = {
    "split": (f"{ROWS}  {SPLIT}", ONE),
    "heads first, sliced": (f"{ROWS}  h = Reshape(r, four)  t = {SWAP}(h)  {SLICES}", ONE),
    "gathered": (f"{ROWS}  h = Reshape(r, five)  {GATHER}  q = {SWAP}(a)  k = {SWAP}(b)  v = {SWAP}(c)", ONE),
    "without a bias": (f"r = MatMul(x, w)  {SPLIT}", ONE),
    "read as a whole, too": (
        f"{ROWS}  h = Reshape(r, four)  t = {SWAP}(h)  {SLICES}  e = Exp(t)",
        {**ONE, "Exp": 1, "Slice": 3, "Transpose": 1},
    ),
}


@pytest.mark.parametrize(("nodes", "expected"), FORMS.values(), ids=FORMS)
def test_form(nodes: str, expected: dict[str, int]) -> None:
    rng = np.random.default_rng(3)
    constants: dict[str, Any] = {
        **{"w": rng.standard_normal((D, 3 * H * S)).astype(np.float32)},
        **{"bias": rng.standard_normal(3 * H * S).astype(np.float32)},
        **{"four": np.array([0, 0, H, 3 * S]), "five": np.array([0, 0, H, 3, S]), "flat": np.array([0, 0, H * S])},
        **{f"n{n}": np.array([n]) for n in (0, 3, 4, 8, 12)},
        **{f"i{n}": np.int64(n) for n in range(3)},
    }
    more = ", float[n,3,s,12] e" if "e = " in nodes else ""
    model = parse(
        f"g (float[n,s,{D}] x) => (float[a,b,c] y{more}) {{ {nodes}  {ATTEND} }}",
        {name: value for name, value in constants.items() if name in nodes + ATTEND},
        opset=23,
    )
    feeds = {"x": rng.standard_normal((2, 5, D)).astype(np.float32)}
    found = operators(check_equal(model, compiled(model, providers=["wasm"]), feeds=feeds))
    assert {name: count for name, count in found.items() if name != "Reshape"} == expected

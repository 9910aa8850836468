"""Attention of windows, with an axis for each window's heads, becomes one operator."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse, random_feeds

TRANSPOSED = "t = Transpose<perm=[0,1,2,4,3]>(k)"
# id: (nodes from q, k and v [n,2,3,w,4] to s)
SCORES = {
    "plain": f"{TRANSPOSED}  m = MatMul(q, t)  s = Softmax<axis=4>(m)",
    "divided": f"{TRANSPOSED}  m = MatMul(q, t)  d = Div(m, two)  s = Softmax<axis=-1>(d)",
    "both scaled": f"{TRANSPOSED}  a = Mul(q, root)  b = Mul(t, root)  m = MatMul(a, b)  s = Softmax<axis=-1>(m)",
}
NUMBERS = {"two": np.float32(2), "root": np.float32(0.6)}
HEADS = "float[n,2,3,w,4] q, float[n,2,3,v,4] k, float[n,2,3,v,5] u"


@pytest.mark.parametrize("nodes", SCORES.values(), ids=SCORES)
def test_windows_are_heads(nodes: str) -> None:
    used = {name: value for name, value in NUMBERS.items() if name in nodes}
    model = parse(f"g ({HEADS}) => (float[a,b,c,d,e] y) {{ {nodes}  y = MatMul(s, u) }}", used)
    result = compiled(model)
    check_equal(model, result, feeds=random_feeds(model, {"n": 2, "w": 3, "v": 6}))
    assert operators(result) == {"Reshape": 4, "Attention": 1}


def test_a_mask_keeps_them_apart() -> None:
    model = parse(
        f"""g ({HEADS}, float[3,1,v] mask) => (float[a,b,c,d,e] y) {{
        {TRANSPOSED}  m = MatMul(q, t)  p = Add(m, mask)  s = Softmax<axis=-1>(p)  y = MatMul(s, u) }}"""
    )
    result = compiled(model)
    check_equal(model, result, feeds=random_feeds(model, {"n": 2, "w": 3, "v": 6}))
    assert "Attention" not in operators(result)

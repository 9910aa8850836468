"""Masks that are only causality become an attribute, others stay inputs; results are the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse

LEAST = np.float32(-3.4e38)
NUMBERS: dict[str, Any] = {
    **{"zero": np.float32(0), "one": np.float32(1), "least": LEAST, "inf": np.float32(-np.inf), "some": np.float32(-5)},
    **{"i0": np.int64(0), "i1": np.int64(1), "v0": np.array([0]), "v1": np.array([1]), "v2": np.array([2])},
    **{"v01": np.array([0, 1]), "two": np.int64(2), "minus": np.int64(-1), "axis": np.array([-2])},
    **{"tril": np.tril(np.ones((1, 1, 16, 16), bool)), "triu": np.triu(np.full((5, 5), LEAST), 1)},
    **{"lower": np.tril(np.ones((5, 5), bool), -1), "yes": np.ones((5, 5), bool)},
    **{"band": np.where(np.tri(5, 5, 1), 0, LEAST).astype(np.float32), "weak": np.triu(np.full((5, 5), -5.0), 1)},
}
NUMBERS = {name: np.asarray(value, np.float32 if name == "weak" else None) for name, value in NUMBERS.items()}
N = "d = Shape(x)  n = Gather(d, i1)  nv = Unsqueeze(n, v0)  nn = Concat<axis=0>(nv, nv)"
LINE = f"{N}  r = Range(i0, n, i1)"
SIDES = f"{LINE}  row = Unsqueeze(r, v1)  col = Unsqueeze(r, v0)"
ADD = "s = Add(w, m)"
# id: (nodes from scores w [2, 2, 5, 5] to s, true if it is causal)
MASKS: dict[str, tuple[str, bool]] = {
    "a triangle of numbers": ("s = Add(w, triu)", True),
    "a table, cut": (f"{N}  t = Slice(tril, v0, nv, v2)  t2 = Slice(t, v0, nv, axis1)  s = Where(t2, w, least)", True),
    "a table, cut lower": (
        f"{N}  e = Add(nv, v1)  t = Slice(tril, v1, e, v2)  t2 = Slice(t, v0, nv, axis1)  s = Where(t2, w, least)",
        False,
    ),
    "Trilu, upper": (f"{N}  f = Expand(least, nn)  m = Trilu<upper=1>(f, i1)  {ADD}", True),
    "Trilu, upper, with the diagonal above": (f"{N}  f = Expand(least, nn)  m = Trilu<upper=1>(f, two)  {ADD}", False),
    "Trilu, lower": (
        f"{N}  f = Expand(one, nn)  t = Trilu<upper=0>(f)  h = Equal(t, zero)  m = Where(h, inf, zero)  {ADD}",
        True,
    ),
    "Trilu, lower, of truths": (
        f"{N}  f = Expand(one, nn)  t = Trilu<upper=0>(f)  b = Cast<to=9>(t)  s = Where(b, w, least)",
        True,
    ),
    "Trilu, the wrong way round": (
        f"{N}  f = Expand(one, nn)  t = Trilu<upper=0>(f)  b = Cast<to=9>(t)  s = Where(b, least, w)",
        False,
    ),
    "Trilu, upper, of truths": (
        f"{N}  f = Expand(one, nn)  t = Trilu<upper=1>(f, i1)  b = Cast<to=9>(t)  s = Where(b, least, w)",
        True,
    ),
    "places compared": (f"{SIDES}  h = Greater(col, row)  m = Where(h, least, zero)  {ADD}", True),
    "places compared, queries first": (
        f"{SIDES}  b = GreaterOrEqual(row, col)  m = Where(b, zero, least)  {ADD}",
        True,
    ),
    "places compared, less": (
        f"{SIDES}  b = LessOrEqual(col, row)  n1 = Not(b)  m = Where(n1, least, zero)  {ADD}",
        True,
    ),
    "places compared, without the own": (
        f"{SIDES}  b = LessOrEqual(col, row)  o = Less(col, row)  m = Where(o, zero, some)  {ADD}",
        False,
    ),
    "the future": (f"{SIDES}  b = GreaterOrEqual(col, row)  m = Where(b, zero, least)  {ADD}", False),
    "a wider band": ("s = Add(w, band)", False),
    "a weak triangle": ("s = Add(w, weak)", False),
    "all": ("s = Where(yes, w, least)", False),
}
NUMBERS["axis1"] = np.array([3])


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize(("nodes", "causal"), MASKS.values(), ids=MASKS)
def test_mask(nodes: str, causal: bool, symbolic: bool) -> None:
    used = {name: NUMBERS[name] for name in set(re.findall(r"\w+", nodes)) & set(NUMBERS)}
    rng = np.random.default_rng(1)
    used |= {f"w{n}": rng.standard_normal((8, 8)).astype(np.float32) for n in "qkv"}
    used |= {"heads": np.array([0, 0, 2, 4]), "flat": np.array([0, 0, 8])}
    split = "  ".join(f"{n}p = MatMul(x, w{n})  {n}s = Reshape({n}p, heads)" for n in "qkv")
    model = parse(
        f"""g (float[{"b,s" if symbolic else "2,5"},8] x) => (float[c,d,e] y) {{ {split}
        q = Transpose<perm=[0,2,1,3]>(qs)  k = Transpose<perm=[0,2,3,1]>(ks)  v = Transpose<perm=[0,2,1,3]>(vs)
        w = MatMul(q, k)  {nodes}  p = Softmax<axis=-1>(s)  mixed = MatMul(p, v)
        rows = Transpose<perm=[0,2,1,3]>(mixed)  y = Reshape(rows, flat) }}""",
        used,
    )
    feeds = {"x": rng.standard_normal((2, 5, 8)).astype(np.float32)}
    result = check_equal(model, compiled(model, providers=["wasm"]), feeds=feeds)
    assert operators(result)["Attention"] == 1
    attention = next(node for node in result.model.graph if node.op_type == "Attention")
    assert attention.attributes["is_causal"].value == int(causal)
    assert (len(attention.inputs) == 3) == causal

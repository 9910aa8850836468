"""Products of rows that were flattened for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse, random_feeds

RNG = np.random.default_rng(3)
CONSTANTS: dict[str, Any] = {
    "w": RNG.standard_normal((4, 6)).astype(np.float32),
    "wt": RNG.standard_normal((6, 4)).astype(np.float32),
    "b": RNG.standard_normal(6).astype(np.float32),
    "flat": np.array([-1, 4]),
    "wide": np.array([0, 3, 6]),
    "other": np.array([3, -1, 6]),
}
FLAT = "f = Reshape(x, flat)  m = Gemm(f, w, b)"
SHAPE = "s = Shape<start=0, end=2>(x)  e = Constant<value_ints=[6]>()  t = Concat<axis=0>(s, e)"
# id: (nodes, remaining operators)
CASES = {
    "and back": (f"{FLAT}  {SHAPE}  y = Reshape(m, t)", {"MatMul": 1}),
    "twice back": (f"{FLAT}  {SHAPE}  a = Reshape(m, t)  r = Relu(a)  c = Reshape(m, t)  y = Add(r, c)",
                   {"MatMul": 1, "Relu": 1, "Add": 1}),
    "to another form": (f"{FLAT}  y = Reshape(m, other)", {"Gemm": 1, "Reshape": 2}),
    "read as it is, too": (f"{FLAT}  {SHAPE}  a = Reshape(m, t)  r = ReduceMax<keepdims=0>(m)  y = Add(a, r)",
                           {"Gemm": 1, "Reshape": 2, "ReduceMax": 1, "Add": 1}),
    "transposed weights": (f"f = Reshape(x, flat)  m = Gemm<transB=1>(f, wt, b)  {SHAPE}  y = Reshape(m, t)",
                           {"Gemm": 1, "Reshape": 2}),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "expected"), CASES.values(), ids=CASES)
def test_product(nodes: str, expected: dict[str, int]) -> None:
    words = set(nodes.replace("(", " ").replace(")", " ").replace(",", " ").split())
    used = {name: value for name, value in CONSTANTS.items() if name in words}
    model = parse(f"g (float[n,3,4] x) => (float[i,j,k] y) {{ {nodes} }}", used)
    result = check_equal(model, compiled(model, providers=["wasm"]), feeds=random_feeds(model, {"n": 2}))
    shapes = {"Shape", "Concat"}
    assert {name: count for name, count in operators(result).items() if name not in shapes} == expected

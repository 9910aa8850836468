"""Gelu, Swish and similar functions, in their many forms."""

from __future__ import annotations

import re

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse

NUMBERS = {
    **{"half": 0.5, "one": 1.0, "two": 2.0, "three": 3.0, "six": 6.0, "zero": 0.0, "sixth": 1 / 6, "minus": -1.0},
    **{"root": 2**0.5, "inverse": 0.5**0.5, "negative": -(0.5**0.5), "cubic": 0.044715, "pi": (2 / np.pi) ** 0.5},
    **{"both": (2 / np.pi) ** 0.5 * 0.044715, "wide": (8 / np.pi) ** 0.5, "quick": 1.702},
}
ERF = "d = Div(x, root)  f = Erf(d)"
CUBE = "c = Pow(x, three)  k = Mul(cubic, c)  s = Add(x, k)"
# id: (nodes, remaining operators)
CASES: dict[str, tuple[str, dict[str, int]]] = {
    "gelu, halved first": (f"{ERF}  a = Add(f, one)  h = Mul(x, half)  y = Mul(h, a)", {"Gelu": 1}),
    "gelu, halved last": (f"{ERF}  a = Add(one, f)  p = Mul(x, a)  y = Div(p, two)", {"Gelu": 1}),
    "gelu, the distribution first": (f"{ERF}  h = Mul(f, half)  a = Add(h, half)  y = Mul(a, x)", {"Gelu": 1}),
    "gelu, of both signs": (
        "d = Mul(x, negative)  f = Erf(d)  a = Sub(one, f)  h = Mul(a, half)  y = Mul(h, x)",
        {"Gelu": 1},
    ),
    "gelu, multiplied out": (f"{ERF}  h = Mul(x, half)  p = Mul(h, f)  y = Add(h, p)", {"Gelu": 1}),
    "gelu of a product": (
        "v = Mul(x, two)  d = Mul(v, inverse)  f = Erf(d)  a = Add(f, one)  p = Mul(v, a)  y = Mul(p, half)",
        {"Gelu": 1, "Mul": 1},
    ),
    "not a gelu": (
        f"{ERF}  a = Add(f, half)  h = Mul(x, half)  y = Mul(h, a)",
        {"Erf": 1, "Add": 1, "Mul": 3},
    ),
    "tanh, GPT-2's": (
        f"{CUBE}  i = Mul(pi, s)  t = Tanh(i)  a = Add(t, one)  h = Mul(half, x)  y = Mul(h, a)",
        {"Gelu": 1},
    ),
    "tanh, in factors": (
        "q = Mul(x, x)  k = Mul(q, cubic)  a = Add(k, one)  p = Mul(x, pi)  i = Mul(p, a)  t = Tanh(i)  "
        "b = Add(one, t)  h = Mul(half, b)  y = Mul(x, h)",
        {"Gelu": 1},
    ),
    "tanh, multiplied out": (
        "q = Mul(x, x)  c = Mul(q, x)  k = Mul(both, c)  l = Mul(pi, x)  i = Add(l, k)  t = Tanh(i)  a = Add(one, t)  "
        "p = Mul(a, x)  y = Mul(p, half)",
        {"Gelu": 1},
    ),
    "tanh, as a sigmoid": (f"{CUBE}  i = Mul(wide, s)  g = Sigmoid(i)  y = Mul(x, g)", {"Gelu": 1}),
    "quick gelu": ("i = Mul(x, quick)  g = Sigmoid(i)  y = Mul(x, g)", {"Swish": 1}),
    "silu, its gate first": ("g = Sigmoid(x)  y = Mul(g, x)", {"Swish": 1}),
    "silu of a quotient": ("v = Div(x, six)  g = Sigmoid(v)  y = Mul(v, g)", {"Swish": 1, "Mul": 1}),
    "a gate of another": ("v = Mul(x, x)  g = Sigmoid(x)  y = Mul(v, g)", {"Sigmoid": 1, "Mul": 2}),
    "hardswish, divided at last": (
        "a = Add(x, three)  c = Clip(a, zero, six)  p = Mul(x, c)  y = Div(p, six)",
        {"HardSwish": 1},
    ),
    "hardswish, x divided": (
        "a = Add(x, three)  c = Clip(a, zero, six)  d = Div(x, six)  y = Mul(d, c)",
        {"HardSwish": 1},
    ),
    "hardswish of a narrow clip": (
        "s = Mul(x, sixth)  a = Add(s, half)  c = Clip(a, zero, one)  y = Mul(c, x)",
        {"HardSwish": 1},
    ),
    "hardswish by min and max": (
        "a = Add(x, three)  l = Max(a, zero)  c = Min(six, l)  p = Mul(c, sixth)  y = Mul(x, p)",
        {"HardSwish": 1},
    ),
    "hardswish by relu": (
        "a = Add(x, three)  l = Relu(a)  c = Min(l, six)  p = Mul(c, x)  y = Mul(p, sixth)",
        {"HardSwish": 1},
    ),
    "hardsigmoid": ("s = Mul(x, half)  a = Add(s, half)  y = Clip(a, zero, one)", {"HardSigmoid": 1}),
    "hardsigmoid, divided": ("a = Add(x, three)  c = Clip(a, zero, six)  y = Div(c, six)", {"HardSigmoid": 1}),
    "a clip": ("y = Clip(x, zero, one)", {"Clip": 1}),
    "a clip of another height": (
        "a = Add(x, three)  c = Clip(a, zero, six)  y = Div(c, three)",
        {"Add": 1, "Clip": 1, "Mul": 1},
    ),
}


@pytest.mark.parametrize(("nodes", "expected"), CASES.values(), ids=CASES)
def test_spelling(nodes: str, expected: dict[str, int]) -> None:
    used = {name: np.float32(NUMBERS[name]) for name in set(re.findall(r"\w+", nodes)) & set(NUMBERS)}
    model = parse(f"g (float[2,5,4] x) => (float[a,b,c] y) {{ {nodes} }}", used)
    feeds = {"x": np.random.default_rng(2).uniform(-5, 5, (2, 5, 4)).astype(np.float32)}
    result = compiled(model, providers=["wasm"])
    assert operators(check_equal(model, result, feeds=feeds)) == expected


@pytest.mark.parametrize("name", [name for name in CASES if "Gelu" in CASES[name][1]])
def test_gelu_of_halves(name: str) -> None:
    """Its numbers are rounded to float16."""
    nodes, expected = CASES[name]
    used = {name: np.float16(NUMBERS[name]) for name in set(re.findall(r"\w+", nodes)) & set(NUMBERS)}
    model = parse(f"g (float16[2,5,4] x) => (float16[a,b,c] y) {{ {nodes} }}", used)
    feeds = {"x": np.random.default_rng(2).uniform(-5, 5, (2, 5, 4)).astype(np.float16)}
    result = compiled(model, providers=["wasm"])
    found = operators(check_equal(model, result, feeds=feeds, tolerance=1e-2))
    found.pop("Cast", None)
    assert found == expected


def test_what_is_read_between_stays() -> None:
    nodes = "a = Add(x, three)  c = Clip(a, zero, six)  p = Mul(x, c)  d = Div(p, six)  y = Sub(d, c)"
    used = {name: np.float32(NUMBERS[name]) for name in ("three", "zero", "six")}
    model = parse(f"g (float[2,5,4] x) => (float[a,b,c] y) {{ {nodes} }}", used)
    assert operators(check_equal(model)) == {"HardSwish": 1, "Add": 1, "Clip": 1, "Sub": 1}

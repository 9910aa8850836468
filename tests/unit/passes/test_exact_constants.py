"""Merged constants: not merged if their type cannot hold the result, or if the last bit matters."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import compiled, operators, parse
from standard_form import run_native, standard_form

RNG = np.random.default_rng(41)
CONSTANTS = {
    **{name: np.float16(number) for name, number in {"k": 1e-3, "far": 6e4, "d": 3e3}.items()},
    "w": RNG.uniform(-0.05, 0.05, (4, 3)).astype(np.float16),
    "conv": RNG.uniform(-0.05, 0.05, (3, 2, 1, 1)).astype(np.float16),
    "bias": np.full(3, 6e4, np.float16),
}
#: id: (nodes from x to y, the shape of x). float32 between nodes holds every number.
HALVES = {
    "two factors": ("p = Mul(x, k)  y = Mul(p, k)", [3, 4]),
    "two divisors": ("p = Div(x, d)  y = Div(p, d)", [3, 4]),
    "two summands": ("p = Add(x, far)  q = Add(p, far)  y = Mul(q, k)", [3, 4]),
    "a summand's factor": ("p = Add(x, d)  q = Mul(p, d)  r = Mul(q, k)  y = Mul(r, k)", [3, 4]),
    "a product's factor": ("p = MatMul(x, w)  q = Mul(p, k)  y = Mul(q, k)", [3, 4]),
    "a convolution's factor": ("p = Conv(x, conv)  q = Mul(p, k)  y = Mul(q, k)", [1, 2, 3, 3]),
    "a bias' factor": ("p = Conv(x, conv, bias)  q = Mul(p, d)  r = Mul(q, k)  y = Mul(r, k)", [1, 2, 3, 3]),
}


@pytest.mark.parametrize("case", HALVES)
def test_float16_keeps_what_its_constants_cannot_hold(case: str) -> None:
    nodes, dims = HALVES[case]
    used = {name: value for name, value in CONSTANTS.items() if f"{name})" in nodes or f"{name}," in nodes}
    model = parse(f"g (float16{dims} x) => (float16[{','.join('efgh'[: len(dims)])}] y) {{ {nodes} }}", used)
    x = RNG.uniform(200, 900, dims).astype(np.float16)
    (wanted,), (found,) = (run_native(each, {"x": x}) for each in (model, standard_form(compiled(model))))
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=4e-3)


@pytest.mark.parametrize(
    "nodes",
    [
        "d = Div(x, c)  y = Floor(d)",
        "d = Div(x, c)  i = Cast<to=7>(d)  y = Cast<to=1>(i)",
        "d = Div(x, c)  e = Add(d, half)  s = Unsqueeze(e, first)  f = Ceil(s)  y = Squeeze(f, first)",
        "d = Div(x, c)  e = Equal(d, one)  y = Cast<to=1>(e)",
        "d = Mul(x, half)  e = Mul(d, c)  y = Floor(e)",
        "d = Add(x, half)  e = Mul(d, c)  y = Round(e)",
    ],
)
@pytest.mark.parametrize("c", [41, 61, 1 / 41])
def test_what_is_rounded_to_integers_is_computed_as_it_stands(nodes: str, c: float) -> None:
    constants = {"c": np.float32(c), "half": np.float32(0.5), "one": np.float32(1), "first": np.array([0])}
    used = {name: value for name, value in constants.items() if f", {name})" in nodes}
    model = parse(f"g (float[n] x) => (float[n] y) {{ {nodes} }}", used)
    x = np.arange(0, 1000, 0.5, dtype=np.float32)
    (wanted,), (found,) = (run_native(each, {"x": x}) for each in (model, standard_form(compiled(model))))
    np.testing.assert_array_equal(found, wanted)


def test_other_constants_are_merged() -> None:
    model = parse(
        "g (float16[n] x) => (float16[n] y) { d = Div(x, c)  e = Mul(d, c)  f = Add(e, c)  y = Add(f, c) }",
        {"c": np.float16(4)},
    )
    assert operators(compiled(model)) == {"Add": 1}

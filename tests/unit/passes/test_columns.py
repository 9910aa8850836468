"""Concat, Split and Slice of channels without copies: the removed ones, the remaining ones, and equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from column_cases import CASES, ints, network, w
from graphs import check_equal, compiled, operators, parse, random_feeds


@pytest.mark.parametrize("sizes", ["1,4,8,8", "n,4,h,w"])
@pytest.mark.parametrize(("nodes", "constants", "left"), CASES.values(), ids=CASES)
def test_columns(nodes: str, constants: dict[str, Any], left: int, sizes: str) -> None:
    model = parse(f"g (float[{sizes}] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    feeds = random_feeds(model, {"n": 1, "h": 8, "w": 8})
    found = operators(check_equal(model, compiled(model, columns=True), feeds=feeds))
    assert sum(found.get(name, 0) for name in ("Concat", "Split", "Slice")) == left, found


SIBLINGS: dict[str, tuple[str, dict[str, np.ndarray], int]] = {
    "with biases and activations": (
        "a = Conv<strides=[2,2]>(x, w, p)  d = Relu(a)  b = Conv<strides=[2,2]>(x, u, q)  e = Relu(b)"
        "  f = Conv(d, v)  g = Conv(e, t)  y = Add(f, g)",
        {"w": w(8, 4), "u": w(4, 4), "p": w(8, 1)[:, 0, 0, 0], "q": w(4, 1)[:, 0, 0, 0]} | {"v": w(4, 8), "t": w(4, 4)},
        3,
    ),
    "three, one of them before a Concat": (
        "a = Conv(x, w)  b = Conv(x, u)  c = Conv(x, t)  d = Conv<pads=[1,1,1,1]>(b, k)  e = Conv<pads=[1,1,1,1]>(c, l)"
        "  j = Concat<axis=1>(a, d, e)  y = Conv(j, v)",
        {"w": w(4, 4), "u": w(8, 4), "t": w(4, 4), "k": w(4, 8, 3), "l": w(4, 4, 3), "v": w(4, 12)},
        5,
    ),
    "with larger windows": (
        "a = Conv<pads=[1,1,1,1]>(x, w)  b = Conv<pads=[1,1,1,1]>(x, u)  f = Conv(a, v)  g = Conv(b, t)  y = Add(f, g)",
        {"w": w(8, 4, 3), "u": w(4, 4, 3), "v": w(4, 8), "t": w(4, 4)},
        4,
    ),
    "with other activations": (
        "a = Conv(x, w)  d = Relu(a)  b = Conv(x, u)  e = Tanh(b)  f = Conv(d, v)  g = Conv(e, t)  y = Add(f, g)",
        {"w": w(8, 4), "u": w(4, 4), "v": w(4, 8), "t": w(4, 4)},
        4,
    ),
    "one read by something else": (
        "a = Conv(x, w)  d = Sin(a)  b = Conv(x, u)  f = Conv(d, v)  g = Conv(b, t)  y = Add(f, g)",
        {"w": w(8, 4), "u": w(4, 4), "v": w(4, 8), "t": w(4, 4)},
        4,
    ),
    "odd channels": (
        "a = Conv(x, w)  b = Conv(x, u)  f = Conv(a, v)  g = Conv(b, t)  y = Add(f, g)",
        {"w": w(7, 4), "u": w(4, 4), "v": w(4, 7), "t": w(4, 4)},
        4,
    ),
}


@pytest.mark.parametrize("sizes", ["1,4,8,8", "n,4,h,w"])
@pytest.mark.parametrize(("nodes", "constants", "left"), SIBLINGS.values(), ids=SIBLINGS)
def test_siblings(nodes: str, constants: dict[str, Any], left: int, sizes: str) -> None:
    """Convolutions of one tensor; the remaining number. Most memory is needed before them."""
    text = f"h = Conv(i, large)  x = Conv(h, small)  {nodes}"
    constants = {**constants, "large": w(32, 4), "small": w(4, 32)}
    model = parse(f"g (float[{sizes}] i) => (float[a,b,c,d] y) {{ {text} }}", constants)
    feeds = random_feeds(model, {"n": 1, "h": 8, "w": 8})
    assert operators(check_equal(model, compiled(model, columns=True), feeds=feeds))["nhwc.Conv"] == left + 2


@pytest.mark.parametrize("seed", [*range(100, 112), 119])
def test_random_networks(seed: int) -> None:
    nodes, constants = network(seed)
    sizes = "1,4,8,8" if seed % 2 else "n,4,h,w"
    model = parse(f"g (float[{sizes}] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    feeds = random_feeds(model, {"n": 1, "h": 8, "w": 8}, seed)
    check_equal(model, compiled(model, columns=True), feeds=feeds, tolerance=1e-3)


def test_an_output_in_the_middle_stays() -> None:
    constants = {"w": w(4, 4), "u": w(4, 4), "t": w(4, 4), "v": w(4, 12)}
    text = "a = Conv(x, w)  b = Conv(x, u)  c = Conv(x, t)  j = Concat<axis=1>(a, b, c)  y = Conv(j, v)"
    model = parse(
        f"g (float[1,4,8,8] x) => (float[a,b,c,d] y, float[e,f,g,h] b, float[k,l,m,n] j) {{ {text} }}", constants
    )
    found = operators(check_equal(model, compiled(model, columns=True)))
    assert found["nhwc.Conv"] == 4


def test_no_more_memory_than_before() -> None:
    """A wide tensor that waits for its second part while larger ones exist would be the peak."""
    text = (
        "a = Conv(x, w)  t = Conv(a, u)  s = Conv<pads=[1,1,1,1]>(t, z)  b = Conv(s, q)"
        "  j = Concat<axis=1>(a, b)  y = Conv(j, v)"
    )
    constants = {"w": w(16, 16), "u": w(64, 16), "z": w(64, 64, 3), "q": w(16, 64), "v": w(4, 32)}
    model = parse(f"g (float[1,16,8,8] x) => (float[a,b,c,d] y) {{ {text} }}", constants)
    result = check_equal(model, compiled(model, columns=True))
    (concat,) = [node for node in result.model.graph if node.op_type == "Concat"]
    assert "y_columns" in concat.attributes  # a is copied, b is not


@pytest.mark.parametrize("level", ["extended", "layout"])
def test_at_lower_levels(level: str) -> None:
    nodes, constants, _ = CASES["branches"]
    model = parse(f"g (float[1,4,8,8] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    check_equal(model, compiled(model, columns=True, level=level))


def test_a_slice_beside_what_has_any_width() -> None:
    """The number of columns that a Concat reads must be known for all inputs."""
    model = parse(
        "g (float[2,8] x, float[2,n] z) => (float[a,b] y) { y0, y1 = Split<axis=1>(x, s)  y = Concat<axis=1>(y1, z) }",
        {"s": ints(4, 4)},
    )
    check_equal(model, compiled(model, columns=True), feeds=random_feeds(model, {"n": 3}))

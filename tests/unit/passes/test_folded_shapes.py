"""Shapes known only after folding, and Expands that broadcasting makes superfluous."""

from __future__ import annotations

import json

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

RNG = np.random.default_rng(3)


def _f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_sizes_behind_computed_pads() -> None:
    """torch.onnx reverses pads with a flipped matrix; later nodes read sizes again."""
    model = parse(
        """g (float[1,5,6,4] x) => (float[a,b,c,d,e,f] y) {
        s = Shape(x)  h = Gather(s, one0)  w = Gather(s, two0)
        hm = Mod(h, four)  hn = Sub(four, hm)  hp = Mod(hn, four)  wm = Mod(w, four)  wn = Sub(four, wm)
        wp = Mod(wn, four)  hu = Unsqueeze(hp, zero)  wu = Unsqueeze(wp, zero)
        few = Concat<axis=0>(zero, zero, zero, wu, zero, hu)  more = ConstantOfShape<value = int64[1] {0}>(two)
        all = Concat<axis=0>(few, more)  rows = Reshape(all, matrix)  back = Slice(rows, last, start, zero, last)
        transposed = Transpose<perm=[1,0]>(back)  flat = Reshape(transposed, last)  pads = Cast<to=7>(flat)
        p = Pad(x, pads)  t = Shape(p)  ph = Gather(t, one0)  pw = Gather(t, two0)
        i = Div(ph, four)  j = Div(pw, four)  iu = Unsqueeze(i, zero)  ju = Unsqueeze(j, zero)
        shape = Concat<axis=0>(one, iu, fours, ju, fours, fours)  r = Reshape(p, shape)
        y = Transpose<perm=[0,1,3,2,4,5]>(r) }""",
        {
            **{"one0": np.int64(1), "two0": np.int64(2), "four": np.int64(4), "zero": np.array([0])},
            **{"two": np.array([2]), "one": np.array([1]), "fours": np.array([4]), "last": np.array([-1])},
            **{"matrix": np.array([-1, 2]), "start": np.array([-(2**63) + 1])},
        },
    )
    result = check_equal(model)
    assert operators(result) == {"Pad": 1, "Reshape": 1, "Transpose": 1}


XC, OUT = "float[n,3,h,w] x, float[n,3] g", "float[a,b,c,d] y"
# id: (graph, constants, remaining Expands)
EXPANDS = {
    "expand_as of a gate": (
        f"g ({XC}) => ({OUT}) {{ u = Unsqueeze(g, axes)  s = Shape(x)  e = Expand(u, s)  y = Mul(x, e) }}",
        {"axes": np.array([2, 3])},
        0,
    ),
    "and somebody else reads it": (
        f"""g ({XC}) => ({OUT}, float[e,f,i,j] z) {{
        u = Unsqueeze(g, axes)  s = Shape(x)  e = Expand(u, s)  y = Mul(e, x)  z = Softmax<axis=-1>(e) }}""",
        {"axes": np.array([2, 3])},
        1,
    ),
    "both are widened": (
        "g (float[3,1] x, float[1,4] t) => (float[a,b] y) { p = Expand(x, s)  q = Expand(t, s)  y = Sub(p, q) }",
        {"s": np.array([3, 4])},
        0,
    ),
    "wider than the other one": (
        "g (float[3,1] x, float[3,1] t) => (float[a,b] y) { p = Expand(x, s)  y = Sub(p, t) }",
        {"s": np.array([3, 4])},
        1,
    ),
    "a condition": (
        "g (bool[1,4] c, float[3,4] x) => (float[a,b] y) { p = Expand(c, s)  y = Where(p, x, zero) }",
        {"s": np.array([3, 4]), "zero": np.float32(0)},
        0,
    ),
    "what has a slope must be as wide": (
        "g (float[1,4] x) => (float[a,b] y) { p = Expand(x, s)  y = PRelu(p, k) }",
        {"s": np.array([3, 4]), "k": _f(3, 4)},
        1,
    ),
}


@pytest.mark.parametrize(("graph", "constants", "left"), EXPANDS.values(), ids=EXPANDS)
def test_expand(graph: str, constants: dict[str, np.ndarray], left: int) -> None:
    model = parse(graph, constants)
    result = check_equal(model, compiled(model))
    assert operators(result).get("Expand", 0) == left


@pytest.mark.parametrize(
    ("flags", "dims", "sizes"),
    [
        ("", ("[4,3,2]", "[4,2,5]"), [4, 3, 5]),
        ("<transBatchA=1>", ("[3,4,2]", "[4,2,5]"), [4, 3, 5]),
        ("<transA=1, transBatchA=1>", ("[2,4,3]", "[4,2,5]"), [4, 3, 5]),
        ("<transB=1, transBatchB=1>", ("[4,3,2]", "[5,4,2]"), [4, 3, 5]),
        ("<transBatchA=1, transBatchB=1>", ("[3,6,4,2]", "[2,6,4,5]"), [6, 4, 3, 5]),
    ],
)
def test_sizes_of_transposed_products(flags: str, dims: tuple[str, str], sizes: list[int]) -> None:
    """For com.microsoft's FusedMatMul, whose first axis may be just before the last."""
    a, b = dims
    text = f"g (float{a} a, float{b} b) => (int64[n] y) {{ m = com.microsoft.FusedMatMul{flags}(a, b)  y = Shape(m) }}"
    result = compiled(parse(text))
    assert operators(result) == {"Identity": 1}
    (found,) = run_native(
        standard_form(result), {name: _f(*json.loads(each)) for name, each in zip("ab", dims, strict=True)}
    )
    assert found.tolist() == sizes


def test_a_batch_of_two_names_may_be_of_either() -> None:
    """Where the left one is 1, the result has the right one's size."""
    model = parse(
        """g (float[b,2,3] x, float[n,3,4] w, float[b,2,4] r) => (float[c,d,e] y, int64[f] z) {
        m = MatMul(x, w)  y = Add(m, r)  s = Shape(m)  t = Shape(x)  z = Sub(s, t) }"""
    )
    feeds = {"x": _f(1, 2, 3), "w": _f(3, 3, 4), "r": _f(1, 2, 4)}
    result = compiled(model)
    for found, wanted in zip(run_native(standard_form(result), feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)

"""Normalizations in exporters' parts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

RNG = np.random.default_rng(13)


def _f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


ROWS, IMAGE = "float[2,3,8] x", "float[n,8,h,5] x"
NUMBERS = {"two": np.float32(2), "one": np.float32(1), "e": np.float32(1e-5), "last": np.array([-1], np.int64)}
MEAN = "q = Pow(x, two)  m = ReduceMean<keepdims=1>(q, last)  p = Add(m, e)  r = Sqrt(p)"
UNIT = {"s": np.ones(4, np.float32), "b": np.zeros(4, np.float32), "g": np.array([0, 4, -1], np.int64)}
GROUPS = "a = Reshape(x, g)  i = InstanceNormalization<epsilon=0.001>(a, s, b)  f = Shape(x)  c = Reshape(i, f)"
CENTER = "m = ReduceMean<keepdims=1>(x, last)  c = Sub(x, m)  q = Mul(c, c)  v = ReduceMean<keepdims=1>(q, last)"
PLUS = "p = Add(v, e)  r = Sqrt(p)"
PLANE = CENTER.replace("last", "plane")
HALF = "h = Cast<to=10>(x)  x32 = Cast<to=1>(h)"
HALF_MEAN = MEAN.replace("x,", "x32,")
SPLIT = "x2 = Reshape(x, g5)"
GROUP_PLANE = CENTER.replace("(x,", "(x2,").replace("last", "planes")
BACK = "f = Shape(x)  t = Reshape(d, f)"
AXES = {
    "plane": np.array([2, 3], np.int64),
    "planes": np.array([2, -1], np.int64),
    "g5": np.array([0, 4, 2, -1], np.int64),
    "minus": np.float32(-0.5),
    "half": np.float32(0.5),
}
# id: (input, nodes, constants, expected operators)
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, int]]] = {
    "rms, divided": (ROWS, f"{MEAN}  d = Div(x, r)  y = Mul(w, d)", {"w": _f(8)}, {"RMSNormalization": 1}),
    "rms, reciprocal": (
        ROWS,
        f"{MEAN}  i = Reciprocal(r)  d = Mul(x, i)  y = Mul(d, w)",
        {"w": _f(8)},
        {"RMSNormalization": 1},
    ),
    "rms, one over": (ROWS, f"{MEAN}  i = Div(one, r)  y = Mul(i, x)", {}, {"RMSNormalization": 1}),
    "rms, square read too": (
        f"{ROWS}",
        f"{MEAN}  d = Div(x, r)  n = Mul(d, w)  y = Add(n, q)",
        {"w": _f(8)},
        {"RMSNormalization": 1, "Pow": 1, "Add": 1},
    ),
    "another mean": (
        ROWS,
        "q = Pow(x, two)  m = ReduceMean<keepdims=1>(q, last)  p = Add(m, e)  r = Sqrt(p)  t = Tanh(x)  y = Div(t, r)",
        {},
        {"Pow": 1, "ReduceMean": 1, "Add": 1, "Sqrt": 1, "Tanh": 1, "Div": 1},
    ),
    "rms, to the power of -0.5": (
        ROWS,
        "q = Mul(x, x)  m = ReduceMean<keepdims=1>(q, last)  p = Add(e, m)  i = Pow(p, minus)  d = Mul(x, i)  "
        "y = Mul(d, w)",
        {**AXES, "w": _f(1, 1, 8)},
        {"RMSNormalization": 1},
    ),
    "rms, reciprocal of a power": (
        ROWS,
        "q = Mul(x, x)  m = ReduceMean<keepdims=1>(q, last)  p = Add(e, m)  j = Pow(p, half)  i = Reciprocal(j)  "
        "y = Mul(i, x)",
        AXES,
        {"RMSNormalization": 1},
    ),
    "rms, then a bias": (
        ROWS,
        f"{MEAN}  d = Div(x, r)  n = Mul(d, w)  y = Add(n, b)",
        {"w": _f(8), "b": _f(8)},
        {"RMSNormalization": 1, "Add": 1},
    ),
    "rms of float16 in float32, scaled behind": (
        ROWS,
        f"{HALF}  {HALF_MEAN}  d = Div(x32, r)  n = Cast<to=10>(d)  k = Mul(n, w16)  y = Cast<to=1>(k)",
        {"w16": _f(8).astype(np.float16)},
        {"RMSNormalization": 1, "Cast": 1},
    ),
    "rms of float16 in float32, scaled before": (
        ROWS,
        f"{HALF}  {HALF_MEAN}  d = Div(x32, r)  k = Mul(w, d)  n = Cast<to=10>(k)  y = Cast<to=1>(n)",
        {"w": _f(8).astype(np.float16).astype(np.float32)},
        {"RMSNormalization": 1, "Cast": 1},
    ),
    "layer, divided": (
        ROWS,
        f"{CENTER}  {PLUS}  d = Div(c, r)  n = Mul(d, w)  y = Add(n, b)",
        {"w": _f(8), "b": _f(8)},
        {"LayerNormalization": 1},
    ),
    "layer, by a reciprocal": (
        ROWS,
        f"{CENTER}  {PLUS}  i = Reciprocal(r)  d = Mul(i, c)  n = Mul(w, d)  y = Add(b, n)",
        {"w": _f(8), "b": _f(1, 8)},
        {"LayerNormalization": 1},
    ),
    "layer, to the power of -0.5": (
        ROWS,
        f"{CENTER}  p = Add(v, e)  i = Pow(p, minus)  y = Mul(c, i)",
        AXES,
        {"LayerNormalization": 1},
    ),
    "layer, multiplied out": (
        ROWS,
        f"{CENTER}  {PLUS}  i = Reciprocal(r)  k = Mul(i, w)  a = Mul(x, k)  t = Mul(m, k)  z = Sub(b, t)  "
        "y = Add(a, z)",
        {"w": _f(8), "b": _f(8)},
        {"LayerNormalization": 1},
    ),
    "layer, multiplied out without a scale": (
        ROWS,
        f"{CENTER}  {PLUS}  i = Reciprocal(r)  a = Mul(i, x)  t = Mul(i, m)  z = Sub(b, t)  y = Add(z, a)",
        {"b": _f(8)},
        {"LayerNormalization": 1},
    ),
    "layer, multiplied out with another factor": (
        ROWS,
        f"{CENTER}  {PLUS}  i = Reciprocal(r)  k = Mul(i, w)  a = Mul(x, k)  t = Mul(m, i)  z = Sub(b, t)  "
        "y = Add(a, z)",
        {"w": _f(8), "b": _f(8)},
        {"ReduceMean": 2, "Sub": 2, "Mul": 4, "Add": 2, "Sqrt": 1, "Reciprocal": 1},
    ),
    "layer, less another mean": (
        ROWS,
        f"{CENTER.replace('Mul(c, c)', 'Mul(x, x)')}  {PLUS}  y = Div(c, r)",
        {},
        {"ReduceMean": 2, "Sub": 1, "Mul": 1, "Add": 1, "Sqrt": 1, "Div": 1},
    ),
    "layer over a plane": (
        IMAGE.replace("h", "3").replace("n,", "2,"),
        f"{PLANE}  {PLUS}  d = Div(c, r)  y = Mul(d, w)",
        {**AXES, "w": _f(3, 5)},
        {"LayerNormalization": 1},
    ),
    "instances": (
        IMAGE,
        f"{PLANE}  {PLUS}  d = Div(c, r)  n = Mul(d, w)  y = Add(n, b)",
        {**AXES, "w": _f(8, 1, 1), "b": _f(1, 8, 1, 1)},
        {"InstanceNormalization": 1},
    ),
    "instances, plain": (IMAGE, f"{PLANE}  {PLUS}  y = Div(c, r)", AXES, {"InstanceNormalization": 1}),
    "groups from parts": (
        IMAGE,
        f"{SPLIT}  {GROUP_PLANE.replace('Sub(x,', 'Sub(x2,')}  {PLUS}  d = Div(c, r)  {BACK}  k = Mul(t, w)  "
        "y = Add(k, b)",
        {
            **AXES,
            "g5": np.array([0, 4, -1], np.int64),
            "planes": np.array([2], np.int64),
            "w": _f(8, 1, 1),
            "b": _f(8, 1, 1),
        },
        {"GroupNormalization": 1},
    ),
    "groups": (
        IMAGE,
        f"{GROUPS}  k = Mul(c, w)  y = Add(k, v)",
        {**UNIT, "w": _f(8, 1, 1), "v": _f(8, 1, 1)},
        {"GroupNormalization": 1},
    ),
    "groups of what is reshaped": (
        "float[1,4,2,6] x",
        f"p = Reshape(x, image)  {GROUPS.replace('(x', '(p')}  y = Mul(c, w)",
        {**UNIT, "w": _f(8, 1, 1), "image": np.array([1, 8, 2, 3], np.int64)},
        {"GroupNormalization": 1, "Reshape": 1},
    ),
    "groups of what is reshaped for others too": (
        "float[1,4,2,6] x",
        f"p = Reshape(x, image)  {GROUPS.replace('(x', '(p')}  y = Mul(c, p)",
        {**UNIT, "image": np.array([1, 8, 2, 3], np.int64)},
        {"GroupNormalization": 1, "Reshape": 1, "Mul": 1},
    ),
    "groups with scales of their own": (
        IMAGE,
        f"{GROUPS}  y = Relu(c)",
        {**UNIT, "s": _f(4), "b": _f(4)},
        {"GroupNormalization": 1, "Relu": 1},
    ),
}


@pytest.mark.parametrize(("given", "nodes", "constants", "expected"), CASES.values(), ids=CASES)
def test_norm(given: str, nodes: str, constants: dict[str, Any], expected: dict[str, int]) -> None:
    words = set(re.findall(r"\w+", nodes))
    used = {name: value for name, value in {**NUMBERS, **constants}.items() if name in words}
    rank = "a,b,c,d" if given.count(",") == 3 else "a,b,c"
    model = parse(f"g ({given}) => (float[{rank}] y) {{ {nodes} }}", used)
    result = compiled(model, providers=["wasm"])
    tolerance = 1e-3 if "to=10" in nodes else 1e-4
    assert operators(check_equal(model, result, tolerance=tolerance)) == expected


@pytest.mark.parametrize(("epsilon", "skip"), [(1e-5, False), (1e-12, False), (1e-12, True)])
def test_layer_norm_of_halves(epsilon: float, skip: bool) -> None:
    """A small epsilon is 0 in float16."""
    first = "z = Add(x, x1)" if skip else "z = Relu(x)"
    nodes = f"{CENTER}  {PLUS}  d = Div(c, r)  n = Mul(d, w)  y = Add(n, b)".replace("(x,", "(z,")
    halves = {"e": np.float16(epsilon), "w": _f(8).astype(np.float16), "b": _f(8).astype(np.float16)}
    model = parse(
        f"g (float16[2,3,8] x, float16[2,3,8] x1) => (float16[a,b,c] y) {{ {first}  {nodes} }}",
        {"last": NUMBERS["last"], **halves},
    )
    found = operators(check_equal(model, compiled(model), tolerance=1e-2))
    assert found == ({"SkipLayerNormalization": 1} if skip else {"Relu": 1, "LayerNormalization": 1})


def test_an_attention_of_transposed_heads_reads_rows() -> None:
    """In the form of PyTorch's newer exporter."""
    sizes = {"sh": np.array([0, 0, 2, 4], np.int64), "flat": np.array([0, 0, 8], np.int64)}
    heads = "  ".join(
        f"p{n} = MatMul(x, w{n})  r{n} = Reshape(p{n}, sh)  h{n} = Transpose<perm=[0,2,1,3]>(r{n})" for n in "qkv"
    )
    model = parse(
        f"""<ir_version: 10, opset_import: ["" : 23]> g (float[2,5,8] x) => (float[a,b,c] y) {{ {heads}
            a = Attention<is_causal=1>(hq, hk, hv)  t = Transpose<perm=[0,2,1,3]>(a)
            z = Reshape(t, flat)  y = Relu(z) }}""",
        {**sizes, **{f"w{n}": _f(8, 8) for n in "qkv"}},
    )
    found = operators(check_equal(model, compiled(model)))
    assert found == {"MatMul": 1, "Attention": 1, "Relu": 1}


@pytest.mark.parametrize(("axis", "expected"), [(-1, {"LayerNormalization": 1}), (1, None)], ids=["its own", "another"])
def test_root_mean_square_of_what_has_no_mean(axis: int, expected: dict[str, int] | None) -> None:
    """Cohere's normalization in torch.export's form for opset 23."""
    model = parse(
        """g (float[2,8,8] x) => (float[2,8,8] y) {
        m = ReduceMean<keepdims=1>(x, axis)  c = Sub(x, m)  y = RMSNormalization<axis=-1>(c, w) }""",
        {"axis": np.array([axis]), "w": _f(8)},
        opset=23,
    )
    found = operators(check_equal(model, compiled(model, providers=["wasm"])))
    assert found == (expected or {"ReduceMean": 1, "Sub": 1, "RMSNormalization": 1})


@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("axes", ["", "<axes=[2, 3]>"])
def test_mean_variance_normalization_at_a_large_mean(axes: str, dtype: str) -> None:
    """By its parts, if there is no kernel: ONNX's own lose all digits at a mean of 10000."""
    model = parse(f"g ({dtype}[2,3,5,6] x) => ({dtype}[a,b,c,d] y) {{ y = MeanVarianceNormalization{axes}(x) }}")
    kind, mean = (np.float32, 10000) if dtype == "float" else (np.float16, 1000)
    x = (mean + np.random.default_rng(3).standard_normal((2, 3, 5, 6))).astype(kind)
    over = (0, 2, 3) if not axes else (2, 3)
    exact = x.astype(np.float64)
    wanted = (exact - exact.mean(over, keepdims=True)) / exact.std(over, keepdims=True)
    result = compiled(model)
    assert "MeanVarianceNormalization" not in operators(result)
    (found,) = run_native(standard_form(result), {"x": x})
    assert found.dtype == kind
    np.testing.assert_allclose(found, wanted, atol=2e-3)

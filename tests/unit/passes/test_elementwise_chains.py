"""Chains of elementwise operators: those that become one node, those that do not, and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse

RNG = np.random.default_rng(11)
F = "float[2,3,4]"
ROW = RNG.standard_normal((3, 1)).astype(np.float32)
HALF, TWO = np.float32(0.5), np.float32(2)
# id: (inputs, nodes, constants, expected operators)
CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, int]]] = {
    "a gate with a shortcut": (f"{F} x, float[2,1,4] g", "p = Mul(x, g)  y = Add(x, p)", {}, {"ElementwiseChain": 1}),
    "a tree": (
        f"{F} x, {F} z",
        "a = Exp(x)  b = Sigmoid(z)  c = Mul(a, b)  d = Neg(c)  y = Sub(d, row)",
        {"row": ROW},
        {"ElementwiseChain": 1},
    ),
    "numbers": (
        f"{F} x",
        "a = Mul(x, half)  b = Sub(two, a)  c = Div(b, two)  d = Tanh(c)  y = Add(d, half)",
        {"half": HALF, "two": TWO},
        {"ElementwiseChain": 1},
    ),
    "with numbers of their own": (
        f"{F} x",
        "a = LeakyRelu<alpha=0.3>(x)  b = HardSigmoid<alpha=0.4,beta=0.1>(a)  c = Clip(b, half)  y = Elu<alpha=2.0>(c)",
        {"half": HALF},
        {"ElementwiseChain": 1},
    ),
    "squares and cubes": (
        f"{F} x",
        "a = Pow(x, two)  b = Pow(a, three)  y = Sqrt(b)",
        {"two": TWO, "three": np.float32(3)},
        {"ElementwiseChain": 1},
    ),
    "powers": (
        f"{F} x",
        "a = Abs(x)  b = Pow(a, root)  c = Pow(b, whole)  y = Neg(c)",
        {"root": np.float32(-0.3), "whole": np.array([4], np.int64)},
        {"ElementwiseChain": 1},
    ),
    "relu6 of Max and Min": (
        f"{F} x, {F} z",
        "a = Mul(x, z)  b = Max(a, zero)  y = Min(six, b)",
        {"zero": np.float32(0), "six": np.array([6], np.float32)},
        {"ElementwiseChain": 1},
    ),
    "the most of many": (
        f"{F} x, float[3,1] z, float[4] w",
        "a = Max(x, half, z, w)  b = Min(a, x, two)  y = Exp(b)",
        {"half": HALF, "two": TWO},
        {"ElementwiseChain": 1},
    ),
    "steps": (
        f"{F} x, {F} z",
        "t = Mul(x, x)  a = Round(t)  b = Sign(z)  c = Mod<fmod=1>(t, two)  d = Mul(a, b)  y = PRelu(d, c)",
        {"two": TWO},
        {"ElementwiseChain": 1},
    ),
    "classes": (
        f"{F} x, {F} z",
        "q = Div(x, z)  n = IsNaN(q)  i = IsInf<detect_negative=0>(q)  e = Xor(n, i)  w = Where(e, z, x)  y = Abs(w)",
        {},
        {"ElementwiseChain": 1},
    ),
    "with numbers that have defaults": (
        f"{F} x",
        "a = Selu<alpha=1.5>(x)  b = Celu<alpha=0.7>(a)  c = Shrink<lambd=0.2,bias=0.1>(b)  "
        'd = ThresholdedRelu<alpha=0.1>(c)  y = Gelu<approximate="tanh">(d)',
        {},
        {"ElementwiseChain": 1},
    ),
    "curves": (
        f"{F} x",
        "b = Asinh(x)  c = Atan(b)  d = Tan(c)  e = Cosh(d)  y = Acosh(e)",
        {},
        {"ElementwiseChain": 1},
    ),
    "a mask of integers": (
        "int64[2,3] x",
        "u = Unsqueeze(x, one)  f = Cast<to=1>(u)  r = Sub(half, f)  y = Mul(r, two)",
        {"one": np.array([1], np.int64), "half": HALF, "two": TWO},
        {"Unsqueeze": 1, "ElementwiseChain": 1},
    ),
    "truths": (
        f"{F} x, float[3,4] z, bool[4] b",
        "l = Less(x, z)  n = Not(b)  o = And(l, n)  w = Where(o, x, z)  y = Abs(w)",
        {},
        {"ElementwiseChain": 1},
    ),
    "a comparison of float16": (
        "float16[2,3,4] x",
        "g = Greater(x, half)  c = Cast<to=1>(g)  s = Sub(two, c)  y = Mul(s, c)",
        {"half": np.float16(0.5), "two": TWO},
        {"Greater": 1, "ElementwiseChain": 1},
    ),
    "float32 chosen by float16": (
        f"float16[2,3,4] h, {F} x",
        "n = Neg(h)  g = Greater(n, half)  w = Where(g, x, two)  y = Abs(w)",
        {"half": np.float16(0.5), "two": TWO},
        {"Neg": 1, "Greater": 1, "ElementwiseChain": 1},
    ),
    "read twice": (
        f"{F} x, {F} z",
        "a = Sub(x, z)  b = Mul(a, two)  c = Exp(a)  y = Concat<axis=0>(b, c)",
        {"two": TWO},
        {"ElementwiseChain": 2, "Concat": 1},
    ),
    "costly and read twice": (
        f"{F} x",
        "a = Erf(x)  b = Mul(a, two)  c = Neg(a)  y = Concat<axis=0>(b, c)",
        {"two": TWO},
        {"Erf": 1, "Mul": 1, "Neg": 1, "Concat": 1},
    ),
    "costly and broadcast": (
        f"{F} x, float[2,1,1] g",
        "e = Erf(g)  y = Mul(x, e)",
        {},
        {"Erf": 1, "Mul": 1},
    ),
    "an infinite number": (
        f"{F} x",
        "l = Less(x, half)  w = Where(l, least, x)  s = Sub(w, w)  y = Abs(s)",
        {"half": HALF, "least": np.float32(-np.inf)},
        {"ElementwiseChain": 1},
    ),
    "one alone": (f"{F} x, {F} z", "y = Add(x, z)", {}, {"Add": 1}),
    "dilated windows": (
        "float[1,6,10] v",
        "u = Unsqueeze(v, none)  p = AveragePool<kernel_shape=[6,10],dilations=[2,2],ceil_mode=1,strides=[9,11]>(u)  "
        "q = Squeeze(p, none)  a = Abs(q)  y = Neg(a)",
        {"none": np.array([0])},
        {"Reshape": 2, "nhwc.AveragePool": 1, "ElementwiseChain": 1},
    ),
}


@pytest.mark.parametrize(("inputs", "nodes", "constants", "expected"), CASES.values(), ids=CASES)
def test_chain(inputs: str, nodes: str, constants: dict[str, Any], expected: dict[str, int]) -> None:
    model = parse(f"g ({inputs}) => (float[a,b,c] y) {{ {nodes} }}", constants)
    result = compiled(model, chains=True)
    assert operators(check_equal(model, result)) == expected


def test_a_chain_is_on_one_provider() -> None:
    """Sinh has no kernel on this webgpu."""
    model = parse(f"g ({F} x) => ({F} y) {{ a = Exp(x)  b = Neg(a)  c = Sinh(b)  d = Abs(c)  y = Sqrt(d) }}")
    found = operators(check_equal(model, compiled(model, chains=True)))
    assert found == {"ElementwiseChain": 2, "Sinh": 1}


def test_an_output_in_the_middle_stays() -> None:
    model = parse(f"g ({F} x) => ({F} y, {F} a) {{ a = Exp(x)  b = Neg(a)  y = Abs(b) }}")
    found = operators(check_equal(model, compiled(model, chains=True)))
    assert found == {"Exp": 1, "ElementwiseChain": 1}


def test_no_more_inputs_than_a_device_binds() -> None:
    names = [f"x{i}" for i in range(12)]
    sums = "  ".join(f"s{i} = Add({f's{i - 1}' if i > 1 else 'x0'}, x{i})" for i in range(1, 12))
    model = parse(f"g ({', '.join(f'{F} {n}' for n in names)}) => ({F} y) {{ {sums}  y = Neg(s11) }}")
    result = check_equal(model, compiled(model, chains=True))
    chains = [node for node in result.model.graph if node.op_type == "ElementwiseChain"]
    assert len(chains) == 2 and all(len(node.inputs) <= 6 for node in chains)


def test_what_shapes_are_computed_with_stays() -> None:
    """The CPU reads the scales of a Resize."""
    model = parse(
        "g (float[1,1,4,4] x, float[4] s) => (float[a,b,c,d] y) "
        "{ t = Mul(s, two)  u = Add(t, two)  y = Resize(x, , u) }",
        {"two": TWO},
    )
    feeds = {"x": np.ones((1, 1, 4, 4), np.float32), "s": np.array([-0.5, -0.5, 0, 0], np.float32)}
    result = compiled(model, chains=True)
    check_equal(model, result, feeds=feeds)
    assert "ElementwiseChain" not in operators(result)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("p = Mul(x, z)  q = Add(p, x)  r = Sub(q, z)  y = Mul(r, x)", {"ElementwiseChain": 1}),
        ("p = Mul(x, z)  y = Add(p, x)", {"Mul": 1, "Add": 1}),
        ("p = Mul(x, g)  q = Add(p, x)  r = Sub(q, z)  y = Mul(r, x)", {"Mul": 2, "Add": 1, "Sub": 1}),
        ("p = Sub(x, z)  q = Mul(p, p)  y = ReduceSum(q)", {"ElementwiseChain": 1}),
        ("p = Mul(x, z)  y = ReduceSum(p)", {"Mul": 1, "ReduceSum": 1}),
    ],
    ids=["long", "short", "broadcast", "reduced", "short and reduced"],
)
def test_a_cpu_fuses_where_it_gains(nodes: str, expected: dict[str, int]) -> None:
    model = parse(f"g ({F} x, {F} z, float[2,1,4] g) => ({F} y) {{ {nodes} }}")
    assert operators(check_equal(model, compiled(model, providers=["wasm"], chains=True))) == expected


# id: (inputs, nodes, constants, expected operators)
REDUCED: dict[str, tuple[str, str, dict[str, Any], dict[str, int]]] = {
    "a variance": (
        f"{F} x, float[2,3,1] m",
        "d = Sub(x, m)  s = Mul(d, d)  y = ReduceMean(s, last)",
        {"last": np.array([-1])},
        {"ElementwiseChain": 1},
    ),
    "all axes, none kept": (f"{F} x, {F} z", "d = Sub(x, z)  y = ReduceL1<keepdims=0>(d)", {}, {"ElementwiseChain": 1}),
    "and a chain behind it": (
        f"{F} x, {F} z",
        "p = Mul(x, z)  s = ReduceSum(p, middle)  t = Add(s, half)  y = Sqrt(t)",
        {"middle": np.array([1]), "half": HALF},
        {"ElementwiseChain": 1},
    ),
    "only a chain behind it": (
        f"{F} x",
        "s = ReduceMean(x, last)  t = Add(s, half)  y = Sqrt(t)",
        {"last": np.array([2]), "half": HALF},
        {"ElementwiseChain": 1},
    ),
    "a chain behind it that reads more": (
        f"{F} x, float[2,3,1] z",
        "a = Exp(x)  s = ReduceMean(a, last)  t = Add(s, z)  y = Sqrt(t)",
        {"last": np.array([2])},
        {"ElementwiseChain": 2},
    ),
    "sums of integers": (
        "int64[2,3,4] x",
        "s = ReduceSum(x, last)  f = Cast<to=1>(s)  y = Mul(f, half)",
        {"last": np.array([2]), "half": HALF},
        {"ReduceSum": 1, "Cast": 1, "Mul": 1},
    ),
    "an outer product that is never made": (
        "float[5,1,8] x, float[1,6,8] z",
        "p = Mul(x, z)  y = ReduceSum<keepdims=0>(p, last)",
        {"last": np.array([2])},
        {"ElementwiseChain": 1},
    ),
    "read by another too": (
        f"{F} x",
        "a = Erf(x)  s = ReduceMax(a, last)  y = Sub(a, s)",
        {"last": np.array([2])},
        {"Erf": 1, "ReduceMax": 1, "Sub": 1},
    ),
    "told to do nothing": (
        f"{F} x",
        "a = Erf(x)  s = ReduceSum<noop_with_empty_axes=1>(a)  b = Tanh(s)  y = Neg(b)",
        {},
        {"ElementwiseChain": 1},
    ),
    "sums of exponentials": (
        f"{F} x",
        "a = Neg(x)  y = ReduceLogSumExp(a, last)",
        {"last": np.array([2])},
        {"Neg": 1, "ReduceLogSumExp": 1},
    ),
}


@pytest.mark.parametrize(("inputs", "nodes", "constants", "expected"), REDUCED.values(), ids=REDUCED)
def test_a_reduction_is_the_end_of_a_chain(
    inputs: str, nodes: str, constants: dict[str, Any], expected: dict[str, int]
) -> None:
    rank = "" if "keepdims=0>(d)" in nodes else "[a,b]" if "keepdims=0" in nodes else "[a,b,c]"
    model = parse(f"g ({inputs}) => (float{rank} y) {{ {nodes} }}", constants)
    assert operators(check_equal(model, compiled(model, chains=True))) == expected


def test_axes_that_are_fed_are_no_end() -> None:
    model = parse(f"g ({F} x, int64[1] k) => (float[a,b,c] y) {{ a = Abs(x)  b = Neg(a)  y = ReduceSum(b, k) }}")
    result = compiled(model, chains=True)
    feeds = {"x": RNG.standard_normal((2, 3, 4)).astype(np.float32), "k": np.array([1])}
    check_equal(model, result, feeds=feeds)
    assert operators(result) == {"ElementwiseChain": 1, "ReduceSum": 1}


# id: (inputs, nodes, constants, expected operators)
TRANSPOSED: dict[str, tuple[str, str, dict[str, Any], dict[str, int]]] = {
    "behind": (f"{F} x, {F} z", "a = Mul(x, z)  b = Abs(a)  y = Transpose<perm=[2,0,1]>(b)", {}, {}),
    "behind one": (f"{F} x", "a = Abs(x)  y = Transpose(a)", {}, {}),
    "before": (f"{F} x", "t = Transpose<perm=[1,2,0]>(x)  a = Mul(t, half)  y = Abs(a)", {"half": HALF}, {}),
    "between": (f"{F} x", "a = Add(x, row)  t = Transpose<perm=[1,2,0]>(a)  b = Exp(t)  y = Neg(b)", {"row": ROW}, {}),
    "before more": (
        f"{F} x, float[3,4,2] z",
        "t = Transpose<perm=[1,2,0]>(x)  a = Mul(t, z)  y = Abs(a)",
        {},
        {"Transpose": 1, "ElementwiseChain": 1},
    ),
    "read by another too": (
        f"{F} x",
        "a = Exp(x)  t = Transpose<perm=[1,2,0]>(a)  s = ReduceSum<keepdims=0>(a)  y = Add(t, s)",
        {},
        {"Exp": 1, "ReduceSum": 1, "Transpose": 1, "Add": 1},
    ),
    "of integers": (
        "int64[2,3,4] x",
        "t = Transpose<perm=[1,2,0]>(x)  a = Cast<to=1>(t)  y = Neg(a)",
        {},
        {"Transpose": 1, "ElementwiseChain": 1},
    ),
    "alone": (f"{F} x", "y = Transpose<perm=[2,0,1]>(x)", {}, {"Transpose": 1}),
}


@pytest.mark.parametrize(("inputs", "nodes", "constants", "expected"), TRANSPOSED.values(), ids=TRANSPOSED)
def test_a_transpose_is_part_of_a_chain(
    inputs: str, nodes: str, constants: dict[str, Any], expected: dict[str, int]
) -> None:
    model = parse(f"g ({inputs}) => (float[a,b,c] y) {{ {nodes} }}", constants)
    found = operators(check_equal(model, compiled(model, chains=True)))
    assert found == (expected or {"ElementwiseChain": 1})


def test_a_cpu_transposes_apart() -> None:
    model = parse(f"g ({F} x) => (float[a,b,c] y) {{ a = Exp(x)  b = Neg(a)  y = Transpose(b) }}")
    found = operators(check_equal(model, compiled(model, providers=["wasm"], chains=True)))
    assert found == {"Exp": 1, "Neg": 1, "Transpose": 1}


def test_a_number_with_an_axis_that_nothing_else_has() -> None:
    model = parse("g (float x) => (float[1] y) { a = Add(x, c)  y = Abs(a) }", {"c": np.array([2], np.float32)})
    result = compiled(model, chains=True)
    check_equal(model, result, feeds={"x": np.array(1.5, np.float32)})
    assert "ElementwiseChain" not in operators(result)

"""Functions of a byte, from its dequantization to the result's quantization, that become a table."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

ONE = np.ones(1, np.float32)
RNG = np.random.default_rng(3)
CONSTANTS: dict[str, Any] = {
    **{
        "sx": np.float32(0.05),
        "zx": np.uint8(120),
        "sy": np.float32(0.04),
        "zy": np.uint8(20),
        "half": np.float32(0.5),
    },
    **{"s8": np.float32(0.03), "z8": np.int8(-7), "s1": np.float32(1 / 256), "z1": np.uint8(0), "six": np.float32(6)},
    **{
        "many": np.full(5, 0.05, np.float32),
        "zeros": np.zeros(5, np.uint8),
        "word": np.uint16(99),
        "none": np.float32(0),
    },
    **{"qs": np.uint8(200), "qb": np.array([90], np.uint8), "w": RNG.standard_normal((5, 5)).astype(np.float32)},
}
_X = "p = QuantizeLinear(x, sx, zx)  q = DequantizeLinear(p, sx, zx)"
_SWISH = f"{_X}  s = Sigmoid(q)  t = QuantizeLinear(s, s1, z1)  u = DequantizeLinear(t, s1, z1)  m = Mul(q, u)"
_Y = "r = QuantizeLinear({}, sy, zy)  y = DequantizeLinear(r, sy, zy)"
# id: (nodes, tables, other operators)
CASES: dict[str, tuple[str, int, dict[str, int]]] = {
    "one operator": (f"{_X}  s = Tanh(q)  {_Y.format('s')}", 1, {}),
    "with itself": (f"{_SWISH}  {_Y.format('m')}", 1, {}),
    "a sigmoid that others read": (
        f"{_SWISH}  v = Mul(x, u)  n = Add(v, m)  {_Y.format('n')}",
        1,
        {"Mul": 2, "Add": 1},
    ),
    "numbers": (f"{_X}  a = Mul(half, q)  b = Sub(a, six)  {_Y.format('b')}", 1, {}),
    "numbers that are quantized": (
        f"""{_X}  k = DequantizeLinear(qs, s1, z1)  a = Mul(q, k)  c = QuantizeLinear(a, sx, zx)
        d = DequantizeLinear(c, sx, zx)  l = DequantizeLinear(qb, sy, zy)  b = Add(d, l)  {_Y.format("b")}""",
        1,
        {},
    ),
    "hard swish": (
        f"{_X}  a = Add(q, half)  c = Clip(a, none, six)  m = Mul(q, c)  e = Div(m, six)  {_Y.format('e')}",
        1,
        {},
    ),
    "bytes of another sign": (
        f"{_X}  a = Elu<alpha=0.5>(q)  r = QuantizeLinear(a, s8, z8)  y = DequantizeLinear(r, s8, z8)",
        1,
        {},
    ),
    "from bytes with a sign": (
        f"p = QuantizeLinear(x, s8, z8)  q = DequantizeLinear(p, s8, z8)  a = Exp(q)  {_Y.format('a')}",
        1,
        {},
    ),
    "two tensors": (
        f"""{_X}  o = MatMul(q, w)  k = QuantizeLinear(o, sx, zx)  l = DequantizeLinear(k, sx, zx)
        a = Add(q, l)  {_Y.format("a")}""",
        0,
        {"MatMul": 1, "QLinearAdd": 1},
    ),
    "a scale for each column": (
        f"""p = QuantizeLinear<axis=2>(x, many, zeros)  q = DequantizeLinear<axis=2>(p, many, zeros)  a = Tanh(q)
        {_Y.format("a")}""",
        0,
        {"Tanh": 1},
    ),
    "integers of 16 bits": (
        f"{_X}  a = Tanh(q)  r = QuantizeLinear(a, s1, word)  y = DequantizeLinear(r, s1, word)",
        0,
        {"Tanh": 1},
    ),
    "a row of numbers": (f"{_X}  a = Mul(q, many)  {_Y.format('a')}", 0, {"Mul": 1}),
    "onnxruntime's operators": (
        f"""{_X}  s = com.microsoft.QLinearSigmoid(p, sx, zx, s1, z1)
        r = com.microsoft.QLinearMul(p, sx, zx, s, s1, z1, sy, zy)  y = DequantizeLinear(r, sy, zy)""",
        1,
        {},
    ),
}


@pytest.mark.parametrize(("nodes", "tables", "others"), CASES.values(), ids=CASES)
def test_tables(nodes: str, tables: int, others: dict[str, int]) -> None:
    model = parse(f"g (float[3,4,5] x) => (float[a,b,c] y) {{ {nodes} }}", CONSTANTS)
    feeds = {"x": np.linspace(-7, 7, 60, dtype=np.float32).reshape(3, 4, 5)}
    result = compiled(model, providers=["wasm"], integers=True)
    check_equal(model, result, feeds=feeds, tolerance=0.041)  # a step
    found = operators(result)
    roundings = ("QuantizeLinear", "DequantizeLinear", "FakeQuantize16")
    assert {name: n for name, n in found.items() if name not in roundings} == {
        **({"ByteTable": tables} if tables else {}),
        **others,
    }


def test_a_number_with_an_axis_that_the_bytes_lack() -> None:
    model = parse(f"g (float x) => (float[a] y) {{ {_X}  a = Add(q, k)  {_Y.format('a')} }}", {**CONSTANTS, "k": ONE})
    result = compiled(model, providers=["wasm"], integers=True)
    check_equal(model, result, feeds={"x": np.array(0.5, np.float32)}, tolerance=0.041)
    assert "ByteTable" not in operators(result)


@pytest.mark.parametrize(
    "nodes",
    ["e = Reciprocal(q)", "e = Mul(q, huge)", "k = Sub(q, q)  e = Div(k, k)"],
    ids=["infinite", "beyond 32 bits", "no number"],
)
def test_what_no_integer_holds(nodes: str) -> None:
    """Saturated, and NaN is the smallest, as in native onnxruntime."""
    text = (
        f"g (uint8[5] x) => (uint8[a] y) {{ q = DequantizeLinear(x, sx, zx)  {nodes}  y = QuantizeLinear(e, sy, zx) }}"
    )
    model = parse(text, {**CONSTANTS, "huge": np.float32(1e30)})
    result = compiled(model, providers=["wasm"], integers=True)
    feeds = {"x": np.array([0, 119, 120, 121, 255], np.uint8)}
    for found, wanted in zip(run_native(standard_form(result), feeds), run_native(model, feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert operators(result) == {"ByteTable": 1}


def test_a_number_of_an_outer_graph() -> None:
    """It is dequantized outside of the body that multiplies it."""
    nodes = "q{0} = DequantizeLinear(x, sx, zx)  m{0} = Mul(q{0}, k)  y{0} = QuantizeLinear(m{0}, sx, zx)"
    body = f"{{0}} () => (uint8[4] y{{0}}) {{{{ {nodes} }}}}"
    model = parse(
        f"""g (uint8[4] x, bool c) => (uint8[4] y) {{ k = DequantizeLinear(qs, s1, z1)
        y = If(c) <then_branch = {body.format("t")}, else_branch = {body.format("e")}> }}""",
        CONSTANTS,
    )
    feeds = {"x": np.array([0, 119, 121, 200], np.uint8), "c": np.array(True)}
    check_equal(model, compiled(model, providers=["wasm"], integers=True), feeds=feeds, tolerance=1)


def test_time_grows_as_tables_do() -> None:
    """Each in a chain is made from all before it."""

    def seconds(count: int) -> float:
        nodes = " ".join(
            f"m{i} = Tanh(q{i}) y{i} = QuantizeLinear(m{i}, s1, zx) q{i + 1} = DequantizeLinear(y{i}, s1, zx)"
            for i in range(count)
        )
        outputs = ", ".join(f"uint8[5] y{i}" for i in range(count))
        model = parse(f"g (uint8[5] x) => ({outputs}) {{ q0 = DequantizeLinear(x, sx, zx) {nodes} }}", CONSTANTS)
        began = time.process_time()
        compiled(model, providers=["wasm"], integers=True)
        return time.process_time() - began

    seconds(10)
    few, many = seconds(50), seconds(400)
    assert many < 20 * few, f"{few:.2f} s for 50, and {many:.2f} s for 400"


def test_bytes_that_are_given_out() -> None:
    """Each that is read elsewhere has its own table, from the same bytes."""
    model = parse(
        f"g (float[3,5] x) => (uint8[a,b] t, uint8[a,b] r) {{ {_SWISH}  r = QuantizeLinear(m, sy, zy) }}", CONSTANTS
    )
    result = compiled(model, providers=["wasm"], integers=True)
    feeds = {"x": np.linspace(-7, 7, 15, dtype=np.float32).reshape(3, 5)}
    check_equal(model, result, feeds=feeds, tolerance=1)
    assert operators(result) == {"QuantizeLinear": 1, "ByteTable": 2}


def test_bodies_have_their_own() -> None:
    body = f"b () => (float[3,5] y) {{ {_X}  a = Tanh(q)  {_Y.format('a')} }}"
    text = f"g (float[3,5] x, bool c) => (float[d,e] z) {{ z = If(c) <then_branch = {body}, else_branch = {body}> }}"
    model = parse(text.replace("else_branch = b", "else_branch = h"), CONSTANTS)
    result = compiled(model, providers=["wasm"], integers=True)
    feeds = {"x": np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5), "c": np.array(True)}
    check_equal(model, result, feeds=feeds, tolerance=0.041)


def test_nothing_where_no_kernel_has_tables() -> None:
    model = parse(f"g (float[3,4,5] x) => (float[a,b,c] y) {{ {_SWISH}  {_Y.format('m')} }}", CONSTANTS)
    found = operators(compiled(model, providers=["wasm"]))
    assert "ByteTable" not in found

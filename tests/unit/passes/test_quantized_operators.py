"""Which operators between dequantized inputs and a quantized result become operators on integers, and which do not."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import parse

from py_ort.compiler import compile_model

_WEIGHTS = np.random.default_rng(0).integers(-127, 128, (6, 4, 3, 3)).astype(np.int8)
_STEPS = np.linspace(0.1, 0.3, 6, dtype=np.float32)
_CONSTANTS = {
    **{"w": _WEIGHTS, "sx": np.float32(0.03), "zx": np.uint8(117), "sw": np.float32(0.01), "zw": np.int8(0)},
    **{
        "sy": np.float32(0.02),
        "least": np.uint8(0),
        "wide": np.int16(0),
        "word": np.uint16(0),
        "zero": np.float32(0),
        "six": np.float32(6),
    },
    **{"u": _WEIGHTS[::-1].astype(np.float32)},
    **{"flat": np.array([24, 5]), "whole": np.array([1, 4, 6, 5])},
    **{"mv": np.eye(5, dtype=np.float32) - 0.5, "mb": np.arange(5, dtype=np.float32) / 10},
    **{"steps": _STEPS, "zeros": np.full(6, 99, np.uint8)},
}
# id: (what stands between the convolution and what quantizes, what quantizes, the operators in the plan besides)
CASES = {
    "plain": ("", "sy, zx", {"QLinearConv"}),
    "identity": ("t = Identity(c)", "sy, zx", {"QLinearConv"}),
    "one scale for each channel": ("", "steps, zeros", {"Conv"}),
    "integers of 16 bits": ("", "sy, wide", {"Conv", "FakeQuantize16"}),
    "relu at the least integer of 16 bits": ("t = Relu(c)", "sy, word", {"Conv", "FakeQuantize16"}),
    "relu at the least integer": ("t = Relu(c)", "sy, least", {"QLinearConv"}),
    "relu above the least integer": ("t = Relu(c)", "sy, zx", {"Conv"}),
    "clip beyond the integers": ("t = Clip(c, zero, six)", "sy, least", {"QLinearConv"}),
    "clip within the integers": ("t = Clip(c, zero, six)", "sx, least", {"Conv"}),
    "a bound that is computed": (
        "m = ReduceMax<keepdims=0>(x)  t = Clip(c, m)",
        "sy, least",
        {"Conv", "ReduceMax", "Clip"},
    ),
    "others read what relu gives": ("t = Relu(c)  z = Sin(t)", "sy, least", {"Conv", "Sin"}),
}


@pytest.mark.parametrize("case", CASES)
def test_operators_on_integers(case: str) -> None:
    between, how, expected = CASES[case]
    outputs = "float[e,f,g,h] y" + (", float[i,j,k,l] z" if "z = " in between else "")
    model = parse(
        f"""g (float[1,4,6,5] x) => ({outputs}) {{ p = QuantizeLinear(x, sx, zx)  q = DequantizeLinear(p, sx, zx)
        v = DequantizeLinear(w, sw, zw)  i = Identity(q)  c = Conv(i, v)  {between}
        r = QuantizeLinear<axis=1>({"t" if between else "c"}, {how})  y = DequantizeLinear<axis=1>(r, {how}) }}""",
        _CONSTANTS,
        opset=21,
    )
    found = {node.op_type for node in compile_model(model.SerializeToString(), providers=["wasm"]).placement.nodes}
    assert found - {"QuantizeLinear", "DequantizeLinear", "Transpose"} == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    {
        "a product ends in it": ("c = Conv(q, v)  r = QuantizeLinear(c, sy, zx)  y = DequantizeLinear(r, sy, zx)", 1),
        "relu at the least integer": (
            "c = Conv(q, v)  t = Relu(c)  r = QuantizeLinear(t, sy, least)  y = DequantizeLinear(r, sy, least)",
            1,
        ),
        "a sum with it": (
            """a = Conv(q, v)  s = QuantizeLinear(a, sy, zx)  d = DequantizeLinear(s, sy, zx)  z = Sin(d)
            c = Conv(q, u)  r = QuantizeLinear(c, sy, zx)  e = DequantizeLinear(r, sy, zx)  b = Add(e, z)  t = Relu(b)
            m = QuantizeLinear(t, sx, least)  y = DequantizeLinear(m, sx, least)""",
            1,
        ),
        "what is only moved": ("m = Transpose(q)  r = QuantizeLinear(m, sx, zx)  y = DequantizeLinear(r, sx, zx)", 1),
        "a pool of what is joined": (
            """c = Conv(q, v)  r = QuantizeLinear(c, sy, zx)  d = DequantizeLinear(r, sy, zx)
            a = Conv(q, u)  s = QuantizeLinear(a, sy, least)  e = DequantizeLinear(s, sy, least)
            j = Concat<axis=1>(d, e)  k = QuantizeLinear(j, sx, zx)  l = DequantizeLinear(k, sx, zx)
            m = MaxPool<kernel_shape=[2,2]>(l)  n = QuantizeLinear(m, sx, zx)  y = DequantizeLinear(n, sx, zx)""",
            1,
        ),
        "an average, and rows": (
            """c = Conv(q, v)  r = QuantizeLinear(c, sy, zx)  d = DequantizeLinear(r, sy, zx)
            m = GlobalAveragePool(d)  n = QuantizeLinear(m, sx, zx)  l = DequantizeLinear(n, sx, zx)
            o = Softmax<axis=1>(l)  k = QuantizeLinear(o, sy, zx)  y = DequantizeLinear(k, sy, zx)""",
            2,
        ),
        "a bias and a sum behind a product": (
            """c = MatMul(q, mv)  r = QuantizeLinear(c, sy, zx)  d = DequantizeLinear(r, sy, zx)  e = Add(mb, d)
            k = QuantizeLinear(e, sx, zx)  l = DequantizeLinear(k, sx, zx)  s = Add(l, q)
            n = QuantizeLinear(s, sy, zx)  y = DequantizeLinear(n, sy, zx)""",
            1,
        ),
        "an average of all": (
            """c = Conv(q, v)  m = AveragePool<kernel_shape=[4,3]>(c)  n = QuantizeLinear(m, sx, zx)
            y = DequantizeLinear(n, sx, zx)""",
            2,
        ),
        "behind a shape that others read": (
            """m = Reshape(q, flat)  n = QuantizeLinear(m, sy, zx)  l = DequantizeLinear(n, sy, zx)  o = Mul(l, six)
            t = Sin(o)  y = Reshape(t, whole)""",
            2,
        ),
        "other steps": ("m = Transpose(q)  r = QuantizeLinear(m, sy, zx)  y = DequantizeLinear(r, sy, zx)", 1),
    }.values(),
)
def test_round_trips_on_webgpu(body: str, expected: int) -> None:
    """No integers are written, and one rounding is left of those that give the same."""
    graph = f"""g (float[1,4,6,5] x) => (float[e,f,g,h] y) {{ p = QuantizeLinear(x, sx, zx)
        q = DequantizeLinear(p, sx, zx)  v = DequantizeLinear(w, sw, zw)  {body} }}"""
    model = parse(graph, _CONSTANTS, opset=21).SerializeToString()
    nodes = compile_model(model, providers=["webgpu", "wasm"]).placement.nodes
    assert {node.provider for node in nodes} == {"webgpu"}
    found = [node.op_type for node in nodes]
    assert not {"QuantizeLinear", "DequantizeLinear", "Relu", "Add"} & set(found)
    assert sum(found.count(name) for name in ("FakeQuantize", "ElementwiseChain")) == expected

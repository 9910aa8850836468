"""Operators between dequantized inputs and a quantized result: which ones become operators on integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from graphs import check_equal, compiled, parse
from standard_form import run_native

from py_ort.compiler import compile_model
from py_ort.compiler.saved.target import SavedModel

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
# id: (nodes between the convolution and the quantization, the quantization, the plan's other operators)
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
    """No integers are written, and one of several equal roundings remains."""
    graph = f"""g (float[1,4,6,5] x) => (float[e,f,g,h] y) {{ p = QuantizeLinear(x, sx, zx)
        q = DequantizeLinear(p, sx, zx)  v = DequantizeLinear(w, sw, zw)  {body} }}"""
    model = parse(graph, _CONSTANTS, opset=21).SerializeToString()
    nodes = compile_model(model, providers=["webgpu", "wasm"]).placement.nodes
    assert {node.provider for node in nodes} == {"webgpu"}
    found = [node.op_type for node in nodes]
    assert not {"QuantizeLinear", "DequantizeLinear", "Relu", "Add"} & set(found)
    assert sum(found.count(name) for name in ("FakeQuantize", "ElementwiseChain")) == expected


@pytest.mark.parametrize(
    ("inputs", "nodes", "outputs"),
    [
        (
            "float[2,3] x, float[3] v",
            """l = MatMul(x, v)  r = QuantizeLinear(l, sy, zx)  d = DequantizeLinear(r, sy, zx)  a = Add(d, two)
            n = QuantizeLinear(a, sx, zx)  y = DequantizeLinear(n, sx, zx)""",
            "float[n] y",
        ),
        (
            "float[3] x, float[3] v",
            """l = MatMul(x, v)  r = QuantizeLinear(l, sy, zx)  d = DequantizeLinear(r, sy, zx)  a = Add(d, one)
            n = QuantizeLinear(a, sx, zx)  y = DequantizeLinear(n, sx, zx)""",
            "float[n] y",
        ),
    ],
    ids=["a vector on the right", "a number with an axis"],
)
def test_sums_behind_roundings(inputs: str, nodes: str, outputs: str) -> None:
    """The other addend may be of another shape than the columns."""
    constants = {"two": np.array([0.7, 1], np.float32), "one": np.ones(1, np.float32)}
    model = parse(f"g ({inputs}) => ({outputs}) {{ {nodes} }}", {**_CONSTANTS, **constants})
    check_equal(model, compiled(model, integers=True), tolerance=0.031)


def test_a_host_stays_before_those_who_read_its_other_outputs() -> None:
    """Only a residual of the sum after the rounding may be computed later."""
    model = parse(
        """g (float[2,3] x) => (float[2,3] y, float[2,1] e) { l, mean, inverse = LayerNormalization(x, ones)
        r = QuantizeLinear(l, sy, zx)  d = DequantizeLinear(r, sy, zx)  e = Sin(mean)  a = Add(d, six)
        n = QuantizeLinear(a, sx, zx)  y = DequantizeLinear(n, sx, zx) }""",
        {**_CONSTANTS, "ones": np.ones(3, np.float32)},
        opset=21,
    )
    found = [node.op_type for node in compile_model(model.SerializeToString(), providers=["webgpu"]).placement.nodes]
    assert found == ["LayerNormalization", "Sin"]


@pytest.mark.parametrize("operator", ["Softmax<axis=-1>(q)", "AveragePool<kernel_shape=[2,2]>(q)", "Add(q, z)"])
def test_saved_operators_are_native_onnxruntimes(operator: str, tmp_path: Path) -> None:
    constants = {"s": np.array([0.04], np.float32), "z1": np.array([100], np.uint8)}
    model = parse(
        f"""g (uint8[1,3,4,4] x, uint8[1,3,4,4] w) => (uint8[a,b,c,d] y) {{ q = DequantizeLinear(x, s, z1)
        z = DequantizeLinear(w, s, z1)  t = {operator}  y = QuantizeLinear(t, s, z1) }}""",
        constants,
        opset=13,
    )
    saved = tmp_path / "saved.onnx"
    compile_model(model.SerializeToString(), providers=["wasm"], optimized=SavedModel(saved))
    rng = np.random.default_rng(1)
    feeds = {name: rng.integers(0, 256, (1, 3, 4, 4)).astype(np.uint8) for name in ("x", "w")}
    loaded = onnxruntime.InferenceSession(saved, providers=["CPUExecutionProvider"])
    (wanted,) = run_native(model, feeds)
    (found,) = loaded.run(None, {each.name: feeds[each.name] for each in loaded.get_inputs()})
    assert np.abs(found.astype(int) - wanted).max() <= 1

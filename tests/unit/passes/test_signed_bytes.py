"""Quantized tensors for a provider whose operators support only int8, without zero points of weights: webnn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from graphs import parse
from standard_form import run_native, standard_form

from py_ort.compiler import CompiledModel, compile_model

RNG = np.random.default_rng(3)
STEPS = np.linspace(0.005, 0.02, 8, dtype=np.float32)
CONSTANTS = {
    **{"sx": np.float32(0.03), "sy": np.float32(0.05), "zx": np.uint8(117), "zy": np.uint8(99), "word": np.uint16(300)},
    "w": RNG.integers(-127, 128, (8, 8, 3, 3)).astype(np.int8),
    "d": RNG.integers(-9, 9, (8, 1, 3, 3)).astype(np.int8),
    **{"sw": np.float32(0.01), "none": np.int8(0), "some": np.int8(4), "steps": STEPS, "nones": np.zeros(8, np.int8)},
    **{"u": RNG.integers(0, 256, (8, 8, 3, 3)).astype(np.uint8), "half": np.uint8(128)},
    **{"b": RNG.integers(-99, 99, 8).astype(np.int32), "sb": np.float32(0.03) * STEPS, "zb": np.zeros(8, np.int32)},
    **{"m": RNG.integers(-99, 99, (5, 8)).astype(np.int8), "mt": RNG.integers(-99, 99, (8, 5)).astype(np.int8)},
}
Q, D = "q = QuantizeLinear(x, sx, zx)", "p = DequantizeLinear(q, sx, zx)"
END = "r = QuantizeLinear(c, sy, zy)  y = DequantizeLinear(r, sy, zy)"


def compiled(body: str, results: str = "float[e,f,g,h] y", opset: int = 17) -> tuple[onnx.ModelProto, CompiledModel]:
    model = parse(f"g (float[1,8,5,5] x) => ({results}) {{ {body} }}", CONSTANTS, opset=opset)
    return model, compile_model(model.SerializeToString(), providers=["webnn", "wasm"])


def check(model: onnx.ModelProto, result: CompiledModel, step: float = 0.05) -> None:
    """Compare the compiled graph with the model."""
    feeds = {"x": RNG.normal(size=(1, 8, 5, 5)).astype(np.float32)}
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for a, b in zip(run_native(standard_form(result), feeds), wanted, strict=True):
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=0, atol=step * 1.01)


def count(result: CompiledModel) -> Mapping[str, int]:
    names = [node.op_type for node in result.placement.nodes]
    return {name: names.count(name) for name in names}


WEIGHTS = {
    "of one scale": ("DequantizeLinear(w, sw, none)", True),
    "of a scale for each channel": ("DequantizeLinear<axis=0>(w, steps, nones)", True),
    "without a zero point": ("DequantizeLinear(w, sw)", True),
    "with a zero point": ("DequantizeLinear(w, sw, some)", False),
    "unsigned around 128": ("DequantizeLinear(u, sw, half)", True),
    "unsigned around another number": ("DequantizeLinear(u, sw, zx)", False),
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_convolutions_on_integers(weights: str) -> None:
    made, taken = WEIGHTS[weights]
    model, result = compiled(f"{Q}  {D}  v = {made}  c = Conv<pads=[1,1,1,1]>(p, v)  {END}")
    assert ("QLinearConv" in count(result)) is taken
    check(model, result)
    if taken:
        [node] = [node for node in result.model.graph if node.op_type == "QLinearConv"]
        kinds = {value.dtype.name for value in (node.inputs[0], *node.inputs[2:4], node.inputs[5], node.inputs[7])}
        assert kinds == {"INT8"}
        assert node.attributes["weight_layout"].value == "OHWI"


def test_depthwise_convolutions_with_a_bias() -> None:
    parts = "v = DequantizeLinear<axis=0>(d, steps, nones)  o = DequantizeLinear<axis=0>(b, sb, zb)"
    model, result = compiled(f"{Q}  {D}  {parts}  c = Conv<group=8, pads=[1,1,1,1]>(p, v, o)  {END}")
    [node] = [node for node in result.model.graph if node.op_type == "QLinearConv"]
    assert node.attributes["weight_layout"].value == "IHWO"
    check(model, result)


@pytest.mark.parametrize(
    "product",
    {
        "MatMul": "v = DequantizeLinear(mt, sw, none)  c = MatMul(t, v)",
        "Gemm": "v = DequantizeLinear(mt, sw, none)  c = Gemm(t, v)",
        "Gemm of a transposed right side": "v = DequantizeLinear(m, sw, none)  c = Gemm<transB=1>(t, v)",
    }.values(),
)
def test_products_on_integers(product: str) -> None:
    """Rows that were moved after they were quantized."""
    moved = "a = MaxPool<kernel_shape=[5,5]>(q)  f = Flatten(a)  t = DequantizeLinear(f, sx, zx)"
    model, result = compiled(f"{Q}  {moved}  {product}  {END}", "float[e,f] y")
    [node] = [node for node in result.model.graph if node.op_type in ("QLinearMatMul", "QGemm")]
    assert node.inputs[0].dtype.name == node.inputs[3].dtype.name == "INT8"
    assert tuple(node.inputs[3].const_value.shape.numpy()) == (5, 8)
    check(model, result)


OTHERS = {
    "integers that the model gives out": (
        f"{Q}  {D}  v = DequantizeLinear(w, sw, none)  c = Conv(p, v)  r = QuantizeLinear(c, sy, zy)",
        "uint8[e,f,g,h] r",
    ),
    "integers that something else reads": (
        f"{Q}  {D}  k = Cast<to=1>(q)  v = DequantizeLinear(w, sw, none)  c = Conv(p, v)  {END}",
        "float[e,f,g,h] y, float[e,f,g,h] k",
    ),
    "a result of 16 bits": (
        f"{Q}  {D}  v = DequantizeLinear(w, sw, none)  c = Conv(p, v)  r = QuantizeLinear(c, sy, word)"
        "  y = DequantizeLinear(r, sy, word)",
        "float[e,f,g,h] y",
    ),
    "weights that are no constants": (
        f"{Q}  {D}  v = DequantizeLinear(q, sx, zx)  t = Concat<axis=0>(v, v)  c = Conv<pads=[2,2,2,2]>(p, t)  {END}",
        "float[e,f,g,h] y",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_stays_floats(case: str) -> None:
    model, result = compiled(*OTHERS[case], opset=21)
    assert "QLinearConv" not in count(result) and "Conv" in count(result)
    check(model, result)


def test_sums_and_moves_between_products() -> None:
    body = f"""{Q}  {D}  v = DequantizeLinear(w, sw, none)  c = Conv<pads=[1,1,1,1]>(p, v)  {END.replace("y =", "e =")}
        s = Add(p, e)  g = QuantizeLinear(s, sy, zy)  h = DequantizeLinear(g, sy, zy)
        n = Concat<axis=1>(h, e)  i = QuantizeLinear(n, sy, zy)  j = DequantizeLinear(i, sy, zy)
        k = GlobalAveragePool(j)  l = QuantizeLinear(k, sx, zx)  y = DequantizeLinear(l, sx, zx)"""
    model, result = compiled(body)
    names = {"QLinearConv", "QLinearAdd", "QLinearConcat", "QLinearGlobalAveragePool"}
    assert names <= set(count(result)) and count(result)["QuantizeLinear"] == 1
    check(model, result)

"""The optimised graph, written as ONNX, computes the same in native onnxruntime."""

from __future__ import annotations

import stat

import bert
import numpy as np
import onnx
import pytest
from graphs import parse, random_feeds
from standard_form import run_native

from py_ort.plan import CompileOptions, compile_model, standard_form

_CONV = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype(np.float32)
_CASES = {
    "conv, batch norm, residual, clip": parse(
        """g (float[N,4,H,W] x) => (float[N,8,H,W] y) {
            a = Conv<pads=[1,1,1,1]>(x, w)
            b = BatchNormalization(a, s, s, s, s)
            c = Conv<pads=[1,1,1,1]>(b, v)
            d = Add(c, b)
            y = Clip(d, lo, hi)
        }""",
        {
            "w": _CONV,
            "v": np.concatenate([_CONV, _CONV], 1),
            "s": np.linspace(0.5, 2, 8, dtype=np.float32),
            "lo": np.float32(-0.5),
            "hi": np.float32(1),
        },
    ),
    "product, bias, swish": parse(
        """g (float[N,6] x) => (float[N,5] y) {
            a = MatMul(x, w)
            b = Add(a, c)
            d = Sigmoid(b)
            y = Mul(b, d)
        }""",
        {"w": np.random.default_rng(1).standard_normal((6, 5)).astype(np.float32), "c": np.ones(5, np.float32)},
    ),
    "products, residuals before and behind": parse(
        """g (float[N,4,6] x) => (float[N,4,6] y) {
            a = MatMul(x, w)
            b = Add(a, c)
            d = Add(b, x)
            e = Tanh(d)
            f = MatMul(e, w)
            g = Relu(f)
            y = Add(e, g)
        }""",
        {"w": np.random.default_rng(2).standard_normal((6, 6)).astype(np.float32), "c": np.ones(6, np.float32)},
    ),
    "bert": bert.bert(),
}


@pytest.mark.parametrize("level", ["basic", "all"])
@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("case", _CASES)
def test_native_onnxruntime_loads_it(case, provider, level, tmp_path):
    model, path = _CASES[case], tmp_path / "optimised.onnx"
    options = CompileOptions(graph_optimization_level=level)
    compile_model(model.SerializeToString(), providers=[provider, "wasm"], options=options, optimised=path)
    written = onnx.load(path)
    assert [i.name for i in written.graph.input] == [i.name for i in model.graph.input]
    assert {node.domain for node in written.graph.node} <= {"", "com.microsoft"}
    feeds = random_feeds(model, {"N": 2, "H": 5, "W": 6, "batch": 2, "sequence": 7})
    for got, wanted in zip(run_native(str(path), feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_large_tensors_lie_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(standard_form, "_EXTERNAL_FROM", 100)
    monkeypatch.setattr(standard_form, "_SMALL", 50)
    model, path = _CASES["product, bias, swish"], tmp_path / "optimised.onnx"
    compile_model(model.SerializeToString(), providers=["wasm"], optimised=path)
    assert (tmp_path / "optimised.onnx.data").stat().st_size >= 120
    assert path.read_bytes().count(b"optimised.onnx.data") == 1
    feeds = random_feeds(model, {"N": 2})
    np.testing.assert_allclose(run_native(str(path), feeds)[0], run_native(model, feeds)[0], rtol=1e-5, atol=1e-5)


def test_a_model_is_written_over_itself(tmp_path, monkeypatch):
    """Its external data are mapped while their file is written."""
    monkeypatch.setattr(standard_form, "_EXTERNAL_FROM", 100)
    weights = np.random.default_rng(0).standard_normal((64, 8192)).astype(np.float32)  # large enough to be mapped
    made = parse("g (float[1,64] x) => (float[1,8192] y) { y = MatMul(x, w) }", {"w": weights})
    path = tmp_path / "m.onnx"
    whole, feeds = made.SerializeToString(), random_feeds(made)
    onnx.save_model(made, path, save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    compile_model(path, providers=["wasm"], optimised=path)
    assert stat.S_IMODE((tmp_path / "m.onnx.data").stat().st_mode) == stat.S_IMODE(path.stat().st_mode)
    np.testing.assert_allclose(run_native(str(path), feeds)[0], run_native(whole, feeds)[0], rtol=1e-5, atol=1e-5)

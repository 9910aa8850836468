"""The optimized graph, written as ONNX, has the same results in native onnxruntime."""

from __future__ import annotations

import stat

import bert
import numpy as np
import onnx
import pytest
from graphs import parse, random_feeds
from standard_form import run_native

from py_ort.compiler import CompileOptions, compile_model
from py_ort.compiler.saved import onnx_writer
from py_ort.compiler.saved.target import DATA_ENTRY, LEAST_ENTRY, SavedModel
from py_ort.exceptions import InvalidArgument

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
    model, path = _CASES[case], tmp_path / "optimized.onnx"
    options = CompileOptions(graph_optimization_level=level)
    compile_model(model.SerializeToString(), providers=[provider, "wasm"], options=options, optimized=SavedModel(path))
    written = onnx.load(path)
    assert [i.name for i in written.graph.input] == [i.name for i in model.graph.input]
    assert {node.domain for node in written.graph.node} <= {"", "com.microsoft"}
    feeds = random_feeds(model, {"N": 2, "H": 5, "W": 6, "batch": 2, "sequence": 7})
    for got, wanted in zip(run_native(str(path), feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_large_tensors_lie_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_writer, "_EXTERNAL_FROM", 100)
    model, path = _CASES["product, bias, swish"], tmp_path / "optimized.onnx"
    compile_model(model.SerializeToString(), providers=["wasm"], optimized=SavedModel(path, least=50))
    assert (tmp_path / "optimized.onnx.data").stat().st_size >= 120
    assert path.read_bytes().count(b"optimized.onnx.data") == 1
    feeds = random_feeds(model, {"N": 2})
    np.testing.assert_allclose(run_native(str(path), feeds)[0], run_native(model, feeds)[0], rtol=1e-5, atol=1e-5)


def test_a_model_is_written_over_itself(tmp_path, monkeypatch):
    """Its external data are mapped while their file is written."""
    monkeypatch.setattr(onnx_writer, "_EXTERNAL_FROM", 100)
    weights = np.random.default_rng(0).standard_normal((64, 8192)).astype(np.float32)  # large enough to be mapped
    made = parse("g (float[1,64] x) => (float[1,8192] y) { y = MatMul(x, w) }", {"w": weights})
    path = tmp_path / "m.onnx"
    whole, feeds = made.SerializeToString(), random_feeds(made)
    onnx.save_model(made, path, save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    compile_model(path, providers=["wasm"], optimized=SavedModel(path))
    assert stat.S_IMODE((tmp_path / "m.onnx.data").stat().st_mode) == stat.S_IMODE(path.stat().st_mode)
    np.testing.assert_allclose(run_native(str(path), feeds)[0], run_native(whole, feeds)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("least", "outside"), [(0, 3), (20, 2), (21, 1), (120, 1), (121, 0)])
def test_a_file_for_initializers_by_onnxruntimes_entries(least, outside, tmp_path):
    """As in native onnxruntime: the same tensors are outside, and it loads them."""
    text = """g (float[N,6] x, int64[1] i) => (float[N,5] y, float[1] z, float[1] p)
    { y = MatMul(x, w)  z = Gather(c, i)  p = Gather(t, i) }"""
    weights = {"w": np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)}
    model = parse(text, {**weights, "c": np.arange(1, 6, dtype=np.float32), "t": np.ones(2, np.float32)})
    path = tmp_path / "optimized.onnx"
    (tmp_path / "below").mkdir()
    saved = SavedModel.of(str(path), {DATA_ENTRY: "below/weights.bin", LEAST_ENTRY: str(least)})
    compile_model(model.SerializeToString(), providers=["wasm"], options=CompileOptions(), optimized=saved)
    entries = [tensor.external_data for tensor in onnx.load(path, load_external_data=False).graph.initializer]
    assert sum(map(bool, entries)) == outside
    assert (tmp_path / "below/weights.bin").exists() == bool(outside)
    feeds = random_feeds(model, {"N": 2}) | {"i": np.array([1])}
    for got, wanted in zip(run_native(str(path), feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "entries",
    [
        *({DATA_ENTRY: name} for name in ("/weights.bin", "../weights.bin", "m.onnx")),
        *({DATA_ENTRY: "weights.bin", LEAST_ENTRY: number} for number in ("x", "-1", "")),
    ],
)
def test_entries_that_cannot_be(entries, tmp_path):
    with pytest.raises(InvalidArgument, match=list(entries)[-1]):
        SavedModel.of(str(tmp_path / "m.onnx"), entries)
    assert SavedModel.of("", entries) is None


def test_what_the_model_says_of_itself_stays(tmp_path):
    """Tools select patterns by the producer."""
    model = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    model.producer_name, model.producer_version, model.domain = "pytorch", "2.13", "example"
    model.model_version, model.doc_string = 7, "words"
    onnx.helper.set_model_props(model, {"key": "value"})
    compile_model(model.SerializeToString(), providers=["wasm"], optimized=SavedModel(tmp_path / "m.onnx"))
    written = onnx.load(tmp_path / "m.onnx")
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string", "metadata_props"):
        assert getattr(written, name) == getattr(model, name)

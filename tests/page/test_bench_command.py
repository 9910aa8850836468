"""`py-ort bench`: its rows have the provider that ran the model, and compare simultaneous measurements."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import small_models
from npm_packages import peer_dist
from onnx import TensorProto, helper, numpy_helper
from text_form import parse
from waiting import wait_until

from py_ort.bench import Row
from py_ort.bench.benchmark_table import _COLUMNS, cells
from py_ort.bench.floor import Floors

GPU, WASM, PEER = ("--webgpu", "software"), ("--provider", "wasm"), ("--against", "onnxruntime-web")
DEVICES = {}


@pytest.fixture(autouse=True)
def each_device_is_measured_once(monkeypatch):
    """In all tests together: that takes ten seconds."""
    monkeypatch.setattr(Floors, "__init__", lambda floors: setattr(floors, "_devices", DEVICES))


@pytest.fixture
def bench(py_ort_json, tmp_path):
    """Time a model, an Add by default; return the status, the rows and the messages."""

    def run(*arguments, model=None):
        (tmp_path / "m.onnx").write_bytes(model or small_models.add())
        return py_ort_json("bench", tmp_path / "m.onnx", "--runs", 1, *arguments)

    return run


@pytest.fixture(scope="module")
def onnxruntime_web():
    return peer_dist()


def test_a_row_for_each_provider(bench):
    status, rows, _ = bench(*GPU)
    found = [(row["provider"], row["nodes"]) for row in rows]
    assert status == 0 and found == [("webgpu", "1 webgpu"), ("wasm", "1 wasm")]
    assert all(row["median_ms"] > 0 and row["max_rel_err"] == 0 for row in rows)
    assert "swiftshader" in rows[0]["adapter"] and not rows[1]["adapter"]


def test_beside_each_time_is_what_the_device_could_do_at_best(bench):
    text = "g (float[256,256] x) => (float[256,256] y) { y = MatMul(x, w) }"
    product = parse(text, {"w": np.ones((256, 256), np.float32)}).SerializeToString()

    def measured():
        """On a busy machine a device's numbers may not settle, or be worse than the run's: then there is no floor."""
        DEVICES.clear()
        rows = bench(*GPU, model=product)[1]
        return rows if all(row["floor"] for row in rows) else None

    gpu, cpu = wait_until(measured, 200)
    for row in gpu, cpu:
        floor = row["floor"]
        assert min(floor[part] for part in ("arithmetic_ms", "memory_ms", "transfers_ms")) > 0
        assert floor["ms"] > floor["arithmetic_ms"]
        assert "×" in cells([Row(**row)])[0][_COLUMNS.index("floor")]
    assert gpu["floor"]["round_trip_ms"] > 0 and gpu["floor"]["launches_ms"] > 0
    assert cpu["floor"]["round_trip_ms"] == cpu["floor"]["launches_ms"] == 0


def test_a_row_says_that_nodes_fell_back(bench):
    _, (row,), _ = bench(*GPU, "--provider", "webgpu", model=small_models.add(TensorProto.DOUBLE))
    assert row["nodes"] == "1 wasm"


def test_without_webgpu_the_row_of_webgpu_says_why_and_the_others_are_there(bench):
    status, rows, said = bench("--webgpu", "off")
    assert status == 1 and "NoAdapter" in said and "What helps" in said
    assert rows[0]["provider"] == "webgpu" and "NoAdapter" in rows[0]["error"] and rows[0]["median_ms"] is None
    assert rows[1]["provider"] == "wasm" and rows[1]["median_ms"] > 0 and not rows[1]["error"]


def test_a_model_that_fails_is_a_row_among_others(py_ort_command, py_ort_json, add_file, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(small_models.unknown_operator("my.domain"))
    command = ("bench", tmp_path / "bad.onnx", add_file, *WASM, "--runs", 1)
    status, (bad, good), err = py_ort_json(*command)
    assert status == 1 and "Frobnicate" in bad["error"] and bad["create_ms"] is None
    assert "my.domain::Frobnicate" in err and "--kernels FILE" in err
    assert good["model"] == "add" and good["median_ms"] > 0
    assert "Frobnicate" in py_ort_command(*command)[1]


def test_dimensions_and_files_are_what_both_engines_get(bench, tmp_path, onnxruntime_web):
    np.save(tmp_path / "scale.npy", np.full(3, 2, np.float32))
    status, rows, said = bench("--dim", "N=5", "--input", f"scale={tmp_path / 'scale.npy'}", *WASM, *PEER)
    assert status == 0 and [row["engine"] for row in rows] == ["py_ort", "onnxruntime-web"], said
    assert [row["max_rel_err"] for row in rows] == [0, 0] and rows[0]["reference"] == "onnxruntime"


def test_without_native_onnxruntime_the_error_is_told_against_the_peer(bench, monkeypatch, onnxruntime_web):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    status, (ours, theirs), said = bench(*WASM, *PEER)
    assert status == 0 and ours["reference"] == "onnxruntime-web wasm" and ours["max_rel_err"] == 0
    assert theirs["max_rel_err"] is None and theirs["reference"] == "" and "nothing to compare" not in said


def test_an_empty_column_of_errors_has_a_reason(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    status, (row,), said = bench("--provider", "wasm")
    assert status == 0 and row["max_rel_err"] is None and row["inputs"] == {"x": [1, 3], "scale": [3]}
    assert "nothing to compare with: native onnxruntime is not installed (pip install onnxruntime)" in said


def test_the_rows_of_onnxruntime_web(bench, onnxruntime_web):
    det = parse("g (float[3,3] x) => (float y) { y = Det(x) }").SerializeToString()  # WebGPU has no kernel for it
    for model, theirs in ((small_models.add(), "webgpu"), (det, "some wasm")):
        status, rows, said = bench(*GPU, "--provider", "webgpu", *PEER, model=model)
        assert status == 0, said
        assert [row["provider"] for row in rows] == ["webgpu", "webgpu", "jsep"]
        assert [row["nodes"] for row in rows[1:]] == [theirs, theirs]


def test_the_ratio_is_to_our_row_of_the_same_measurement():
    def row(engine, provider, ms):
        return Row("m", engine, provider, 1, 1, 1, ms, ms, 1, "", 0.0, "")

    rows = [
        *(row("py_ort", "webgpu", 2), row("onnxruntime-web", "webgpu", 6), row("onnxruntime-web", "jsep", 8)),
        *(row("py_ort", "wasm", 10), row("onnxruntime-web", "wasm", 20)),
    ]
    assert [found[_COLUMNS.index("peer / ours")] for found in cells(rows)] == ["", "3.00", "4.00", "", "2.00"]


def test_each_browser_has_a_row(bench, tmp_path):
    """Including one that is missing; the others continue."""
    status, rows, said = bench(*WASM, "--browser", "/no/browser", "--browser", "chromium")
    none, chromium = rows
    assert status == 1 and "BrowserNotFound" in none["error"] and none["browser"] == "/no/browser" in said
    assert chromium["browser"] == "chromium" and chromium["browser_version"].split()[-1][0].isdigit()
    assert chromium["median_ms"] > 0 and not chromium["error"]


def test_earlier_rows(py_ort_command, py_ort_json, add_file, tmp_path):
    file, command = tmp_path / "old.json", ("bench", add_file, *WASM, "--runs", 1)
    py_ort_command(*command, "--json", file)
    rows = json.loads(file.read_text())
    rows[0]["median_ms"] = 1000.0
    file.write_text(json.dumps(rows))
    status, out, _ = py_ort_command(*command, "--against", file)
    assert status == 0 and "before" in out and "1000.0 (-100%)" in out
    assert py_ort_json(*command, "--against", file)[1][0]["before_ms"] == 1000
    for text in ("{}", "[1]", "no JSON"):
        file.write_text(text)
        status, _, said = py_ort_command(*command, "--against", file)
        assert status == 1 and "no rows of" in said
    status, _, said = py_ort_command("bench", add_file, "--against", "onnxruntime-wep")
    assert status == 2 and "neither onnxruntime-web nor a file" in said


def _dense() -> bytes:
    """Two products with weights, which both ways of quantizing accept."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((64, 64)).astype(np.float32) for name in "vw"}
    text = "g (float[8,64] x) => (float[8,64] y) { between = MatMul(x, v)  y = MatMul(between, w) }"
    return parse(text, weights).SerializeToString()


def test_quantized_models_have_rows_beside_the_float_one(bench, onnxruntime_web):
    status, rows, said = bench(*WASM, *PEER, "--quantize", "dynamic", "--quantize", "qdq", model=_dense())
    assert status == 0, said
    assert [(row["quantized"], row["engine"]) for row in rows] == [
        (form, engine) for form in ("", "dynamic", "qdq") for engine in ("py_ort", "onnxruntime-web")
    ]
    for row in rows:
        assert row["reference"] == "onnxruntime" and row["max_rel_err"] < 0.02
        floats = next(each for each in rows if each["engine"] == row["engine"])["median_ms"]
        assert row["float_ms"] == (floats if row["quantized"] else None)
    ours = {row["quantized"]: row["nodes"] for row in rows if row["engine"] == "py_ort"}
    assert ours[""] == "2 wasm" and all(int(ours[form].split()[0]) > 2 for form in ("dynamic", "qdq"))


def test_models_of_the_first_onnx_files_are_quantized(bench):
    """Their weights are inputs too, even those of a separate node."""
    sizes = numpy_helper.from_array(np.array([4, 3, 3, 3], np.int64), "sizes")
    filled = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    nodes = [
        helper.make_node("ConstantOfShape", ["sizes"], ["made"], value=filled),
        helper.make_node("Conv", ["x", "made"], ["y"], kernel_shape=[3, 3]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])
    inputs = [x, helper.make_tensor_value_info("sizes", TensorProto.INT64, [4])]
    graph = helper.make_graph(nodes, "g", inputs, [y], [sizes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=3).SerializeToString()
    status, rows, said = bench(*WASM, "--quantize", "qdq", model=model)
    assert status == 0, said
    assert rows[1]["quantized"] == "qdq" and rows[1]["median_ms"] > 0 and rows[1]["max_rel_err"] < 1e-2


def test_what_cannot_be_quantized_has_a_row_that_says_why(bench, monkeypatch):
    status, (plain, quantized), said = bench(*WASM, "--quantize", "qdq", model=_dense())
    assert status == 0 and quantized["error"] == "", said
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    status, (plain, quantized), said = bench(*WASM, "--quantize", "qdq", model=_dense())
    assert status == 1 and plain["median_ms"] > 0 and quantized["median_ms"] is None
    assert quantized["error"].startswith("NotFound") and "pip install onnxruntime" in said


def test_only_rows_of_models_take_quantize(py_ort_command):
    status, _, said = py_ort_command("bench", "--bridge", "--quantize", "qdq")
    assert status == 2 and "no --quantize" in said

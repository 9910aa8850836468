"""Profiles of real runs: their contents, and plausible times."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import pytest
from session_settings import settings
from text_form import parse

from py_ort import InferenceSession, RunOptions
from py_ort.profiling import Trace

X = np.random.default_rng(3).normal(size=(3, 8, 16)).astype(np.float32)


OPERATORS = {"MatMul", "Softmax", "Det", "Mul"}
DET_ON_CPU = {"providers": [("webgpu", {"forceCpuNodeNames": "det"}), "wasm"]}


def model() -> bytes:
    """MatMul, Softmax and Mul for the GPU; Det between them, for the CPU if `DET_ON_CPU`."""
    text = """mixed (float[3,8,16] x) => (float[3] y) {
        a = MatMul(x, w)  b = Softmax(a)  d = Det(b)  y = Mul(d, d) }"""
    weights = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32)
    return named(parse(text, {"w": weights}, 17), "product", "softmax", "det", "square")


def named(made: onnx.ModelProto, *names: str) -> bytes:
    """Return the model with names of its nodes."""
    for node, name in zip(made.graph.node, names, strict=True):
        node.name = name
    return made.SerializeToString()


def profiled(new_session: Callable[..., InferenceSession], folder: Path, runs: int, **more: object) -> Trace:
    session = new_session(model(), settings(folder), **more)
    assert session.get_profiling_start_time_ns() > 0
    for _ in range(runs):
        session.run(None, {"x": X})
    name = session.end_profiling()
    assert session.end_profiling() == "" and session.get_profiling_start_time_ns() == 0
    session.run(None, {"x": X})
    assert "timeline" not in session.stats()["last_run"]
    return Trace.load(name)


def test_mixed_model(new_session, tmp_path):
    trace = profiled(new_session, tmp_path, 3, **DET_ON_CPU)
    events = list(trace.spans())
    nodes = Counter((e["name"], e["args"]["provider"]) for e in events if e["cat"] == "Node")
    gpu, cpu = "WebGpuExecutionProvider", "CPUExecutionProvider"
    assert nodes == {
        ("product_kernel_time", gpu): 3,
        ("softmax_kernel_time", gpu): 3,
        ("square_kernel_time", gpu): 3,
        ("det_kernel_time", cpu): 3,
    }
    kernels = {row.kernel: row for row in trace.kernels()}
    assert all(row.total_ms > 0 and row.nodes for row in kernels.values())
    assert {row.op_type for row in kernels.values()} == OPERATORS
    assert "mul__elementwise" in kernels and kernels["Det"].provider == cpu
    # Creation, in order.
    phases = [name for name, _, _ in trace.phases()]
    for earlier, later in (("model_loading_uri", "compiling the model"), ("fetch the plan", "make the kernels")):
        assert phases.index(earlier) < phases.index(later)
    # Transfers.
    uploads = [e for e in events if e["name"] == "upload" and e["args"]["run"] == 0]
    assert X.nbytes in {e["args"]["bytes"] for e in uploads}
    assert Counter(e["name"] for e in events)["feeds to the page"] == 3


def test_one_clock(new_session, tmp_path):
    trace = profiled(new_session, tmp_path, 4, providers=["webgpu", "wasm"])
    runs = {e["args"]["run"]: e for e in trace.spans() if e["name"] == "model_run"}
    assert sorted(runs) == [0, 1, 2, 3]
    for event in trace.spans():
        run = runs.get(event["args"].get("run"))
        if run is None:
            continue
        # A ping is off by at most its half; 5 ms is far more than a ping takes.
        assert event["ts"] >= run["ts"] - 5000
        assert event["ts"] + event["dur"] <= run["ts"] + run["dur"] + 5000
    order = ("feeds to the page", "SequentialExecutor::Execute", "outputs to Python")
    by_name = {(e["name"], e["args"].get("run")): e for e in trace.spans("Session")}
    for number in runs:
        starts = [by_name[name, number]["ts"] for name in order]
        assert starts == sorted(starts)


def test_replayed_runs_have_kernels(new_session, tmp_path):
    only = named(parse("g (float[3,8,16] x) => (float[3,8,16] y) { y = Relu(x) }"), "relu")
    session = new_session(only, settings(tmp_path), providers=["webgpu"])
    for _ in range(3):
        session.run(None, {"x": X})
    assert session.stats()["last_run"]["replayed"]
    session.close()  # ends the profile, too
    (file,) = tmp_path.iterdir()
    last = Trace.load(file).since(2)
    assert [e["args"]["node"] for e in last.spans("Kernel")] == ["relu"]
    assert not list(last.spans("Resolve"))


def test_wasm_alone(new_session, tmp_path):
    trace = profiled(new_session, tmp_path, 2, providers=["wasm"])
    assert {(row.op_type, row.calls) for row in trace.kernels()} == {(operator, 2) for operator in OPERATORS}
    assert trace.notes() == []


def test_runs_timed_as_a_whole(new_session, tmp_path):
    session = new_session(model(), settings(tmp_path), **DET_ON_CPU)
    whole = RunOptions()
    whole._profile = "passes"
    expected = session.run(None, {"x": X})[0]
    for _ in range(2):
        np.testing.assert_array_equal(session.run(None, {"x": X}, whole)[0], expected)
        told = session.stats()["last_run"]
        assert told["segments"] == told["gpu"]["passes"] == 2 and "profile" not in told
        assert 0 < told["gpu"]["ms"] < told["gpu"]["span_ms"] <= told["run_ms"]
    session.run(None, {"x": X})
    assert "gpu" not in session.stats()["last_run"]
    trace = Trace.load(session.end_profiling())
    assert {e["args"]["run"] for e in trace.spans("Kernel")} == {0, 3}
    assert {row.op_type: row.calls for row in trace.apart().nodes()} == dict.fromkeys(OPERATORS, 2)
    times = trace.gpu_times()
    assert times is not None and times.apart_ms > 0 and 0 < times.together_ms < times.span_ms


def test_control_flow_is_not_counted_twice(new_session, tmp_path):
    made = parse(
        """g (float[2,2] x, bool c) => (float[2,2] y) {
        y = If(c) <then_branch = yes () => (float[2,2] z) { z = Exp(x) },
                   else_branch = no () => (float[2,2] z) { z = Neg(x) }> }"""
    )
    for branch in made.graph.node[0].attribute:
        branch.g.node[0].name = f"the {branch.g.node[0].op_type}"
    session = new_session(named(made, "choice"), settings(tmp_path), providers=["wasm"])
    for chosen in (True, False, True):
        session.run(None, {"x": X[0, :2, :2], "c": np.array(chosen)})
    trace = Trace.load(session.end_profiling())
    assert {(row.op_type, row.calls, *row.nodes) for row in trace.kernels()} == {
        ("Exp", 2, "the Exp"),
        ("Neg", 1, "the Neg"),
    }
    assert [e["name"] for e in trace.spans("Control")] == ["choice"] * 3


def test_command(tmp_path, py_ort_command):
    file = tmp_path / "mixed.onnx"
    file.write_bytes(model())
    files = {name: tmp_path / f"out.{name}" for name in ("html", "json", "trace")}
    args = [arg for name, path in files.items() for arg in (f"--{name}", path)]
    status, out, err = py_ort_command("profile", file, "--runs", 2, "--webgpu", "software", *args)
    assert status == 0, err
    assert "mul__elementwise" in out
    result = json.loads(files["json"].read_text())
    assert {(row["op_type"], row["calls"]) for row in result["kernels"]} >= {("Det", 2), ("Mul", 2)}
    assert sum(row["share"] for row in result["kernels"]) == pytest.approx(1)
    assert {(row["kernel"], row["calls"]) for row in result["nodes"]} == {
        (n, 2) for n in ("product", "softmax", "det", "square")
    }
    html = files["html"].read_text()
    assert "mul__elementwise" in html and "src=" not in html
    trace = Trace.load(files["trace"])
    assert list(trace.spans("Kernel"))
    # Each counted run follows one that is timed as a whole.
    whole = [e for e in trace.spans("Session") if "gpu_ms" in e["args"]]
    assert [(e["args"]["run"], e["args"]["gpu_passes"]) for e in whole] == [(2, 1), (4, 1)]
    assert all(0 < e["args"]["gpu_ms"] <= e["dur"] / 1000 for e in whole)
    assert {e["args"]["run"] for e in trace.spans("Kernel")} == {0, 1, 3, 5}
    gpu = result["gpu"]
    assert gpu == asdict(trace.since(2).gpu_times())
    assert gpu["together_ms"] == median(e["args"]["gpu_ms"] for e in whole) and gpu["apart_ms"] > 0
    words = f"kernels {gpu['apart_ms']:.2f} ms one by one, {gpu['together_ms']:.2f} ms as they run together"
    assert f"gpu: {words}" in out and words in html


def test_command_without_a_gpu(tmp_path, py_ort_command):
    file, trace = tmp_path / "mixed.onnx", tmp_path / "trace"
    file.write_bytes(model())
    command = ("profile", file, "--provider", "wasm", "--runs", 2, "--trace", trace)
    _, out, _ = py_ort_command(*command)
    assert "mean of 2 runs: " in out and ", of which kernels " in out and "gpu: " not in out
    _, out, _ = py_ort_command(*command, "--json", "-")
    found = json.loads(out)
    assert found["gpu"] is None and found["browser_ms"] >= 0
    assert found["mean_ms"] >= sum(row["total_ms"] for row in found["kernels"]) / 2 > 0
    assert [e["args"]["run"] for e in Trace.load(trace).spans("Session") if e["name"] == "model_run"] == [0, 1, 2, 3]

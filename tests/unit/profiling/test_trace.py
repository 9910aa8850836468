"""Profiles without a browser: clocks, events, sums, and onnxruntime's own traces."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from py_ort.exceptions import InvalidArgument
from py_ort.profiling.clock import PageClock
from py_ort.profiling.profile import Profile, RunTimes
from py_ort.profiling.trace import GpuTimes, Trace
from py_ort.profiling.trace_report import gpu_words, kernel_table, page


class _Pages:
    """A page whose clock started 2 s ago on a Python clock that the test moves; answers are slower each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.delay = 100.0, 0.001
        monkeypatch.setattr("py_ort.profiling.clock.time.perf_counter", lambda: self.now)

    async def request(self, body: Any) -> Any:
        answer = type("Answer", (), {"body": type("Pong", (), {})()})()
        self.now += self.delay / 2
        answer.body.nowMs = (self.now - 98.0) * 1000
        self.now += self.delay / 2
        self.delay *= 2
        return answer


def test_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = PageClock()
    asyncio.run(clock.align(_Pages(monkeypatch)))  # type: ignore[arg-type]
    assert clock.uncertainty == pytest.approx(0.0005)
    assert clock.seconds(1500.0) == pytest.approx(99.5)


def profile(rows: list[dict[str, Any]]) -> Profile:
    made = Profile("some_prefix", started=10.0, clock=PageClock(offset=9.0, uncertainty=0.0))
    timeline = [
        ["walk the plan", "page", 2002.0, 2005.0],
        ["relu", "node", 2003.0, 2003.5, {"node_index": 0, "op_name": "Relu", "provider": "webgpu"}],
        [
            "inputs of det",
            "node",
            2003.5,
            2004.0,
            {"node_index": 1, "op_name": "Det", "provider": "wasm", "waiting": True},
        ],
        ["det", "node", 2004.0, 2005.0, {"node_index": 1, "op_name": "Det", "provider": "wasm"}],
    ]
    info = {"received_ms": 2001.0, "answered_ms": 2009.0, "timeline": timeline, "profile": rows, "replayed": False}
    made.add_run(RunTimes(11.0, 11.0005, 11.0195, 11.02), info)
    return made


ROWS = [
    {
        "kernel": "relu__a",
        "provider": "webgpu",
        "workgroups": [1, 1, 1],
        "ms": 0.25,
        "start_ms": 2006.0,
        "node": "relu",
        "op_type": "Relu",
        "node_index": 0,
    },
    {
        "kernel": "relu__b",
        "provider": "webgpu",
        "workgroups": [2, 1, 1],
        "ms": 0.75,
        "start_ms": 2006.25,
        "node": "relu",
        "op_type": "Relu",
        "node_index": 0,
    },
]


def test_events() -> None:
    found = {(e["cat"], e["name"]): e for e in profile(ROWS).trace().spans()}
    times = {key: (e["ts"], e["dur"]) for key, e in found.items()}
    assert times["Session", "model_run"] == (1_000_000, 20_000)
    assert times["Session", "feeds to the page"] == (1_000_500, 500)
    assert times["Session", "outputs to Python"] == (1_009_000, 10_500)
    assert times["Session", "SequentialExecutor::Execute"] == (1_001_000, 8_000)
    assert times["Node", "det_kernel_time"] == (1_004_000, 1_000)
    assert times["Wait", "inputs of det"] == (1_003_500, 500)
    assert times["Resolve", "resolve relu"] == (1_003_000, 500)
    assert times["Node", "relu_kernel_time"] == (1_006_000, 1_000)
    assert times["Kernel", "relu__b"] == (1_006_250, 750)
    args = found["Kernel", "relu__b"]["args"]
    assert (args["node"], args["op_name"], args["provider"]) == ("relu", "Relu", "WebGpuExecutionProvider")
    assert found["Node", "det_kernel_time"]["args"]["provider"] == "CPUExecutionProvider"


def test_kernels() -> None:
    rows = profile(ROWS).trace().kernels()
    assert [(r.kernel, r.op_type, r.calls, r.total_ms, r.nodes) for r in rows] == [
        ("Det", "Det", 1, 1.0, ["det"]),
        ("relu__b", "Relu", 1, 0.75, ["relu"]),
        ("relu__a", "Relu", 1, 0.25, ["relu"]),
    ]
    assert [r.share for r in rows] == [0.5, 0.375, 0.125]
    assert kernel_table(rows, 1, top=1).row_count == 2


def test_runs_timed_as_a_whole_are_no_rows() -> None:
    made = profile(ROWS)
    node = ["det", "node", 3004.0, 3005.0, {"node_index": 1, "op_name": "Det", "provider": "wasm"}]
    for ms in (0.9, 0.8, 0.5):
        info = {
            "received_ms": 3001.0,
            "answered_ms": 3009.0,
            "timeline": [node],
            "gpu": {"passes": 2, "ms": ms, "span_ms": 2 * ms},
        }
        made.add_run(RunTimes(12.0, 12.0005, 12.0195, 12.02), info)
    made.add_run(RunTimes(13.0, 13.0005, 13.0195, 13.02), {**info, "gpu": {}})
    trace = made.trace()
    assert trace.gpu_times() == GpuTimes(apart_ms=1.0, together_ms=0.8, span_ms=1.6)
    assert {row.kernel: row.calls for row in trace.apart().kernels()} == {"Det": 2, "relu__a": 1, "relu__b": 1}
    assert trace.apart().gpu_times() is None and trace.since(1).gpu_times() is None
    text = gpu_words(GpuTimes(1.0, 0.8, 1.6), 3)
    assert (
        text == "kernels 1.00 ms one by one, 0.80 ms as they run together, 1.60 ms with the time between them "
        "(median of 3 runs)"
    )
    assert "between" not in gpu_words(GpuTimes(1.0, 0.8, 0.8), 3)


def test_without_timestamps_it_says_so() -> None:
    made = profile(
        [
            {
                "kernel": "relu__a",
                "provider": "webgpu",
                "workgroups": [1, 1, 1],
                "node": "relu",
                "op_type": "Relu",
                "node_index": 0,
            }
        ]
    )
    trace = made.trace()
    assert not list(trace.spans("Kernel"))
    (note,) = trace.notes()
    assert "no timestamp-query" in note
    assert note in page(trace, "title", {}, 1)


def test_file(tmp_path: Path) -> None:
    made = profile(ROWS)
    made.prefix = str(tmp_path / "prefix")
    name = made.write()
    assert re.fullmatch(r"prefix_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d{3}\.json", Path(name).name)
    assert json.loads(Path(name).read_text()) == made.trace().events == Trace.load(name).events
    first, *spans, last = Path(name).read_text().splitlines()
    assert first.startswith("[") and last == "]"
    assert all({"pid", "dur", "ts", "ph", "name", "args"} <= json.loads(line.rstrip(",")).keys() for line in spans)
    assert {e["pid"] for e in Trace.load(name).spans()} == {os.getpid()}
    Path(name).write_text("{}x")
    with pytest.raises(InvalidArgument, match="is no trace"):
        Trace.load(name)


def test_page_needs_nothing_else() -> None:
    text = page(profile(ROWS).trace(), "a <b> & c", {"model": "</script>"}, 1)
    assert "a &lt;b&gt; &amp; c" in text and "&lt;/script&gt;" in text
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", text)
    assert "relu__b" in text


def test_onnxruntimes_own_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="r"), helper.make_node("Softmax", ["a"], ["y"], name="s")]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "native")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for _ in range(3):
        session.run(None, {"x": np.ones((2, 3), np.float32)})
    rows = Trace.load(session.end_profiling()).kernels()
    assert {(r.kernel, r.calls, *r.nodes) for r in rows} == {("Relu", 3, "r"), ("Softmax", 3, "s")}

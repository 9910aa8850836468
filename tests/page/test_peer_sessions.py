"""Sessions of onnxruntime-web: `InferenceSession(…, engine="onnxruntime-web")`, and commands with --engine."""

import json

import numpy as np
import pytest
import small_models
from npm_packages import peer_dist
from relu_cases import X, write
from session_settings import settings
from shared_browser import BROWSER
from text_form import parse

from py_ort import InferenceSession, OrtValue
from py_ort.exceptions import EPFail, Fail, InvalidArgument, NotImplemented, PyOrtError

FEEDS = {"x": np.arange(3, dtype=np.float32).reshape(1, 3), "scale": np.full(3, 2, np.float32)}
SUM = FEEDS["x"] + 2


@pytest.fixture(autouse=True, scope="module")
def onnxruntime_web():
    peer_dist()


def peer(model: bytes, *providers: str, engine: str = "onnxruntime-web", **options) -> InferenceSession:
    return InferenceSession(model, providers=list(providers) or ["wasm"], browser=BROWSER, engine=engine, **options)


@pytest.mark.parametrize(
    ("engine", "provider"),
    [("onnxruntime-web", "wasm"), ("onnxruntime-web", "webgpu"), ("onnxruntime-web:jsep", "webgpu")],
)
def test_outputs_and_times(engine, provider):
    with peer(small_models.add(), provider, engine=engine) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], SUM)
        assert [arg.name for arg in session.get_inputs()] == ["x", "scale"] and isinstance(session, InferenceSession)
        name = {"wasm": "CPUExecutionProvider", "webgpu": "WebGpuExecutionProvider"}[provider]
        assert session.get_providers() == [name] and "hromium" in session.browser and engine in repr(session)
        stats = session.stats()
        assert stats["browser_ms"] >= 0 and "creation" in session._repr_html_()
        assert min(stats["create_ms"], stats["first_run_ms"], stats["last_run"]["run_ms"]) > 0
        assert stats["created"]["version"] == "1.30.0"
        (value,) = session.run_with_ort_values(None, {name: OrtValue(array) for name, array in FEEDS.items()})
        np.testing.assert_array_equal(value.numpy(), SUM)
        np.testing.assert_array_equal(session.run_async(None, FEEDS).result(60)[0], SUM)
    with pytest.raises(PyOrtError, match="closed"):
        session.run(None, FEEDS)


def test_sessions_share_a_worker_until_something_fails():
    with peer(small_models.add()) as first, peer(small_models.add()) as second:
        assert first._engine.worker is second._engine.worker
        with pytest.raises(Fail, match="Frobnicate"):
            peer(small_models.unknown_operator("my.domain"))
        with peer(small_models.add()) as third:
            assert third._engine.worker is not first._engine.worker
            np.testing.assert_array_equal(third.run(["y"], FEEDS)[0], SUM)
        np.testing.assert_array_equal(first.run(["y"], FEEDS)[0], SUM)


def test_wrong_names_and_engines():
    with peer(small_models.add()) as session:
        with pytest.raises(InvalidArgument, match="no input 'z'"):
            session.run(None, {"z": FEEDS["x"]})
        with pytest.raises(InvalidArgument, match="no output 'z'"):
            session.run(["z"], FEEDS)
    with pytest.raises(InvalidArgument, match="engine is one of py_ort, onnxruntime-web, onnxruntime-web:jsep"):
        peer(small_models.add(), engine="onnxruntime-wep")

    class Mine(InferenceSession):
        pass

    with pytest.raises(NotImplemented, match="only InferenceSession itself"):
        Mine(small_models.add(), engine="onnxruntime-web")


def test_what_it_has_not_is_a_typed_error():
    with peer(small_models.add()) as session:
        for ask in (
            session.placement,
            session.io_binding,
            session.memory,
            session.get_provider_options,
            session.set_providers,
            lambda: session.create_ortvalue_from_shape_and_type([1], np.float32, "webgpu"),
            lambda: session.run(None, {**FEEDS, "x": [FEEDS["x"]]}),
        ):
            with pytest.raises(NotImplemented, match="onnxruntime-web"):
                ask()
        with pytest.raises(NotImplemented, match=r"^memory\(\): sessions of onnxruntime-web have not"):
            session.memory()
        assert session.end_profiling() == ""
    with pytest.raises(NotImplemented, match="enable_profiling"):
        peer(small_models.add(), sess_options=settings(enable_profiling=True))


def test_a_provider_that_is_not_there():
    with pytest.raises(EPFail, match="WebNN"):
        peer(small_models.add(), "webnn")
    options = settings(entries={"session.disable_cpu_ep_fallback": "1"})
    det = parse("g (float[3,3] x) => (float y) { y = Det(x) }").SerializeToString()
    with pytest.raises(Fail, match="fallback to CPU EP has been explicitly disabled"):
        peer(det, "webgpu", sess_options=options)


def test_ort_session(new_session):
    sessions = [new_session(small_models.add(), providers=["wasm"], engine=e) for e in ("py_ort", "onnxruntime-web")]
    assert [session.run(None, FEEDS)[0].tolist() for session in sessions] == [SUM.tolist(), SUM.tolist()]


def test_conformance_by_both(tmp_path, py_ort_command):
    write(tmp_path / "cases/right", np.maximum(X, 0))
    write(tmp_path / "cases/wrong", X)
    engines = ("--engine", "py_ort", "--engine", "onnxruntime-web")
    status, out, _ = py_ort_command(
        "conformance", tmp_path / "cases", *engines, "--provider", "wasm", "--json", "-", "--html", tmp_path / "p.html"
    )
    runs = json.loads(out)["runs"]
    assert status == 1 and [run["engine"] for run in runs] == ["py_ort", "onnxruntime-web"]
    for run in runs:
        assert run["cases"]["right"]["status"] == "passed" and "wrong output" in run["cases"]["wrong"]["reason"]
    assert "chromium onnxruntime-web wasm" in (tmp_path / "p.html").read_text()


def test_run_and_bench_by_it(tmp_path, py_ort_command):
    (tmp_path / "m.onnx").write_bytes(small_models.add())
    both = ("--engine", "py_ort", "--engine", "onnxruntime-web", "--provider", "wasm")
    status, out, _ = py_ort_command("run", tmp_path / "m.onnx", "--random", *both, "--json", "-")
    runs = json.loads(out)["runs"]
    assert status == 0 and runs[1]["engine"] == "onnxruntime-web" and runs[1]["max_rel_err"] == 0
    status, out, _ = py_ort_command("bench", tmp_path / "m.onnx", *both[2:], "--runs", 1, "--json", "-")
    (row,) = json.loads(out)
    assert status == 0 and row["engine"] == "onnxruntime-web" and row["median_ms"] > 0 and row["max_rel_err"] == 0

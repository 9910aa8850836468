"""Sessions, exports and tools on the provider mirror: run by test_mirror.py, which builds it in."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose
from onnx import TensorProto, helper, numpy_helper

import py_ort
from py_ort.cli import cli
from py_ort.compiler.compile import compile_model
from py_ort.compiler.compile_options import CompileOptions
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.folders import ASSETS
from py_ort.profiling import Trace
from py_ort.schema.gen.ErrorCode import ErrorCode

W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
B = np.arange(4, dtype=np.float32)
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 6
WEB = Path(__file__).parents[2] / "web"
NODES = [("MatMul", "x w", "xw"), ("Add", "xw b", "sum"), ("Sigmoid", "sum", "s"), ("Relu", "s", "y")]


def expected(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-(x @ W + B)))


def model(nodes: Sequence[tuple[str, str, str]] = NODES) -> bytes:
    graph = helper.make_graph(
        [helper.make_node(op, inputs.split(), [output], name=f"the_{op}") for op, inputs, output in nodes],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(W, "w"), numpy_helper.from_array(B, "b")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()


def opened(providers: list[str], profile: Path | None = None) -> py_ort.InferenceSession:
    options = py_ort.SessionOptions()
    options.graph_optimization_level = py_ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_profiling = profile is not None
    options.profile_file_prefix = str(profile)
    return py_ort.InferenceSession(model(), options, providers=providers)


@pytest.fixture(scope="module")
def session() -> Iterator[py_ort.InferenceSession]:
    with opened(["mirror"]) as session:
        yield session


def test_placed_with_reasons(session: py_ort.InferenceSession) -> None:
    assert session.get_providers() == ["MirrorExecutionProvider", "CPUExecutionProvider"]
    assert session.placement().counts() == {"mirror": 3, "wasm": 1}
    assert [(node.op_type, node.reason) for node in session.placement().fallbacks()] == [
        ("Sigmoid", "mirror: no kernel")
    ]
    assert "MirrorExecutionProvider" in py_ort.get_all_providers()


def test_run_and_again(session: py_ort.InferenceSession) -> None:
    for x in (X, X, X[:1]):
        assert_allclose(session.run(None, {"x": x})[0], expected(x), rtol=1e-5)


def test_values_on_its_device(session: py_ort.InferenceSession) -> None:
    x = py_ort.OrtValue.ortvalue_from_numpy(X, "mirror")
    assert (x.device_name(), x.numpy().tolist()) == ("mirror", X.tolist())
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_output("y", "mirror")
    session.run_with_iobinding(binding)
    [y] = binding.get_outputs()
    assert y.device_name() == "mirror"
    assert_allclose(y.numpy(), expected(X), rtol=1e-5)
    with pytest.raises(InvalidArgument, match="on device 0 of mirror: nothing of device 0 of webgpu"):
        binding.bind_output("y", "webgpu")
    with pytest.raises(InvalidArgument, match="int64 has no form on mirror"):
        py_ort.OrtValue.ortvalue_from_numpy(np.arange(3), "mirror")


def test_errors_name_it(session: py_ort.InferenceSession) -> None:
    with pytest.raises(PyOrtError) as told:
        py_ort.InferenceSession(model(), providers=[("mirror", {"enableGraphCapture": "1"})])
    assert told.value.provider == "mirror"
    options = py_ort.SessionOptions()
    options.graph_optimization_level = py_ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with pytest.raises(PyOrtError, match="do not run on mirror: the_Sigmoid"):
        py_ort.InferenceSession(model(), options, providers=["mirror"])


def test_on_two_devices() -> None:
    with opened(["mirror", "webgpu"]) as session:
        assert session.placement().counts() == {"mirror": 3, "webgpu": 1, "wasm": 0}
        for x in (X, X + 1, X[:2]):
            assert_allclose(session.run(None, {"x": x})[0], expected(x), rtol=1e-5)
        x = py_ort.OrtValue.ortvalue_from_numpy(X, "mirror")
        assert_allclose(session.run(None, {"x": x})[0], expected(X), rtol=1e-5)
        y = session.run_with_ort_values(["y"], {"x": py_ort.OrtValue.ortvalue_from_numpy(X, "webgpu")})[0]
        assert_allclose(y.numpy(), expected(X), rtol=1e-5)


def test_profile(tmp_path: Path) -> None:
    with opened(["mirror"], tmp_path / "p") as session:
        session.run(None, {"x": X})
        places = {event["args"].get("provider") for event in Trace.load(session.end_profiling()).events}
    assert {"MirrorExecutionProvider", "CPUExecutionProvider"} <= places


def asked(*arguments: object) -> str:
    """Return the standard output of a command."""
    done = CliRunner().invoke(cli, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.output


def test_exported(tmp_path: Path) -> None:
    source = tmp_path / "dense.onnx"
    source.write_bytes(model())
    np.save(tmp_path / "x.npy", X)
    assert "mirror" in asked("check", source, "--provider", "mirror", "--all")
    asked("export", source, "-o", tmp_path, "--provider", "mirror", "--check", "--input", f"x={tmp_path / 'x.npy'}")
    with py_ort.InferenceSession(tmp_path / "dense.pyort", providers=["mirror"]) as session:
        assert session.placement().counts()["mirror"] == 3
        assert_allclose(session.run(None, {"x": X})[0], expected(X), rtol=1e-5)


def test_conformance() -> None:
    """One has its kernel there, the other runs on the CPU."""
    named = "test_(relu|sigmoid|add|add_bcast|matmul_[234]d|matmul_1d_1d)$"
    cases = ("conformance", "onnx-node", "--filter", named, "--jobs", 1)
    assert " 0 failed" in asked(*cases, "--provider", "mirror")
    done = CliRunner().invoke(cli, [*map(str, cases), "--provider", "mirror", "--no-fallback"])
    assert done.exit_code == 1
    assert "1 nodes do not run on mirror" in done.output


def test_pytest_plugin(pytester: pytest.Pytester) -> None:
    (pytester.path / "dense.onnx").write_bytes(model())
    pytester.makepyfile("""
        import numpy as np

        def test_it(ort_session):
            session = ort_session("dense.onnx")
            assert session.get_providers()[0] == "MirrorExecutionProvider"
            session.run(None, {"x": np.zeros((2, 4), np.float32)})
    """)
    done = pytester.runpytest_subprocess("--ort-provider", "mirror", "-v")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*test_it*chromium-mirror* PASSED*"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what web/test/on_provider, in Node, says of the model without its Sigmoid."""
    folder = tmp_path_factory.mktemp("mirror")
    plain = CompileOptions(graph_optimization_level="disabled")
    dense = model([*NODES[:2], ("Relu", "sum", "y")])
    compiled = compile_model(dense, providers=["mirror", "wasm"], options=plain)
    (folder / "plan").write_bytes(compiled.plan)
    (folder / "weights").write_bytes(compiled.weights.tobytes())
    job = {"plan": str(folder / "plan"), "weights": str(folder / "weights"), "core": str(ASSETS / "core.mjs")}
    job |= {"provider": "mirror", "dims": X.shape, "data": X.ravel().tolist()}
    (folder / "job.json").write_text(json.dumps(job))
    build = ["node", str(WEB / "build.mjs"), "--node", "on_provider", "--out", str(folder)]
    subprocess.run(build, check=True)
    command = ["node", str(folder / "main.mjs"), str(folder / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_replays(told: dict[str, Any]) -> None:
    for run in told["runs"]:
        assert_allclose(run["y"], np.maximum(X @ W + B, 0).ravel(), rtol=1e-5)
        assert run["dispatches"] == 3
    assert [run["replayed"] for run in told["runs"]] == [False, True]


def test_outputs_stay_on_its_device(told: dict[str, Any]) -> None:
    assert_allclose(told["again"], np.maximum(np.maximum(X @ W + B, 0) @ W + B, 0).ravel(), rtol=1e-5)
    assert told["elsewhere"]["code"] == ErrorCode.invalid_argument
    assert "device 0 of mirror, and this session on device 1" in told["elsewhere"]["message"]
    assert told["memory"]["mirror"]["weights"] > 0


def test_what_it_lacks_is_refused_by_its_name(told: dict[str, Any]) -> None:
    refused = {"code": ErrorCode.not_implemented, "message": 'provider "mirror" has no graph capture'}
    assert told["capture"] == refused


def test_a_lost_device_ends_its_own_sessions_only(told: dict[str, Any]) -> None:
    assert told["lost"]["code"] == ErrorCode.device_lost
    assert told["other"] == "done"


def test_copies_and_locations() -> None:
    """From device to device through the heap; places of others are refused, or reported as unknown."""
    for names in (("mirror", "mirror"), ("mirror", "webgpu"), ("webgpu", "mirror")):
        source, target = (py_ort.OrtValue.ortvalue_from_numpy(X + i, name) for i, name in enumerate(names))
        py_ort.copy_tensors([source], [target])
        assert target.numpy().tolist() == X.tolist()


def test_no_fallback_is_about_the_cpu() -> None:
    options = py_ort.SessionOptions()
    options.graph_optimization_level = py_ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with py_ort.InferenceSession(model(), options, providers=["mirror", "webgpu"]) as session:
        session.run(None, {"x": X})
        assert {"mirror", "webgpu"} <= {*session.memory()}
    capture = ("webgpu", {"enableGraphCapture": "1"})
    with pytest.raises(PyOrtError, match="several devices"):
        py_ort.InferenceSession(model(), options, providers=["mirror", capture])

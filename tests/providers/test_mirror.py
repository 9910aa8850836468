"""A provider in a folder of its own (mirror): typed arrays in JavaScript, run in Node."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from onnx import TensorProto, helper, numpy_helper

from py_ort.compiler.compile import compile_model
from py_ort.compiler.options import CompileOptions
from py_ort.folders import ASSETS
from py_ort.schema.gen.ErrorCode import ErrorCode

WEB = Path(__file__).parents[2] / "web"
NAMED = {**os.environ, "PY_ORT_PROVIDERS": str(Path(__file__).parent / "mirror")}
WEIGHTS = {"w": np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4), "b": np.arange(4, dtype=np.float32)}
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 6


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(x @ WEIGHTS["w"] + WEIGHTS["b"], 0)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the script says of a dense layer on the mirror."""
    folder = tmp_path_factory.mktemp("mirror")
    nodes = [("MatMul", "x w", "xw"), ("Add", "xw b", "sum"), ("Relu", "sum", "y")]
    graph = helper.make_graph(
        [helper.make_node(op, inputs.split(), [output], name=op) for op, inputs, output in nodes],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in WEIGHTS.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    plain = CompileOptions(graph_optimization_level="disabled")
    compiled = compile_model(model.SerializeToString(), options=plain)
    (folder / "plan").write_bytes(compiled.plan)
    (folder / "weights").write_bytes(compiled.weights.tobytes())
    job = {"plan": str(folder / "plan"), "weights": str(folder / "weights"), "core": str(ASSETS / "core.mjs")}
    job |= {"provider": "mirror", "dims": X.shape, "data": X.ravel().tolist()}
    (folder / "job.json").write_text(json.dumps(job))
    build = ["node", str(WEB / "build.mjs"), "--node", "on_provider", "--out", str(folder)]
    subprocess.run(build, check=True, env=NAMED)
    command = ["node", str(folder / "main.mjs"), str(folder / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_bundles_have_it_by_its_folder_alone(tmp_path: Path) -> None:
    subprocess.run(["node", WEB / "build.mjs", "--out", tmp_path], check=True, env=NAMED)
    mirror, webgpu = (json.loads((tmp_path / f"kernels.{name}.json").read_text()) for name in ("mirror", "webgpu"))
    assert [kernel["op_type"] for kernel in mirror] == ["Add", "Relu", "MatMul"]
    assert len(webgpu) > 100
    having = {file.name for file in tmp_path.glob("*.*js") if "the mirror has no kernel for" in file.read_text()}
    assert {"worker.js", "session_worker.mjs"} <= having
    assert not [name for name in having if ".wasm" in name]


def test_runs_and_replays(told: dict[str, Any]) -> None:
    for run in told["runs"]:
        assert_allclose(run["y"], expected(X).ravel(), rtol=1e-5)
        assert run["dispatches"] == 3
    assert [run["replayed"] for run in told["runs"]] == [False, True]


def test_outputs_stay_on_its_device(told: dict[str, Any]) -> None:
    assert_allclose(told["again"], expected(expected(X)).ravel(), rtol=1e-5)
    assert told["elsewhere"]["code"] == ErrorCode.invalid_argument
    assert "device 0, and this session on device 1" in told["elsewhere"]["message"]
    assert told["memory"]["mirror"]["weights"] > 0


def test_what_it_lacks_is_refused_by_its_name(told: dict[str, Any]) -> None:
    refused = {"code": ErrorCode.not_implemented, "message": 'provider "mirror" has no graph capture'}
    assert told["capture"] == refused


def test_a_lost_device_ends_its_own_sessions_only(told: dict[str, Any]) -> None:
    assert told["lost"]["code"] == ErrorCode.device_lost
    assert told["other"] == "done"

"""A model above 2 GB, all on the GPU: its weights use neither Python's own memory nor the wasm heap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import large_model
import numpy as np
import pytest
import small_models
from onnx import TensorProto, helper
from shared_browser import BROWSER

from py_ort import InferenceSession
from py_ort.exceptions import OutOfMemory

GB = 1 << 30
#: Beyond 31 and 32 bits.
OFFSETS = (64, 5 * GB // 2, 9 * GB // 2)


def _why_not() -> str:
    if os.environ.get("PY_ORT_LARGE") != "1":
        return "PY_ORT_LARGE=1 asks for it (make large)"
    try:
        available = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return "this system does not say how much memory is free"
    return "" if available >= 12 * GB else f"{available / GB:.1f} GB of memory are free, and it needs 12"


@pytest.mark.large
@pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "-")
def test_weights_stream_to_the_gpu(tmp_path):
    if shutil.disk_usage(tmp_path).free < 4 * GB:
        pytest.skip("4 GB of disk are needed")
    try:
        large_model.write(tmp_path)
        command = [sys.executable, large_model.__file__, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    finally:
        (tmp_path / "weights.bin").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["error"] < 1e-4
    assert told["memory"]["webgpu"]["weights"] > 2.3 * GB
    assert told["memory"]["wasm"]["weights"] == 0 and told["heap"] < 100 << 20
    assert told["own"] < GB


@pytest.mark.large
@pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "-")
@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_a_feed_that_no_memory_holds(new_session, provider):
    ends = [small_models.floats("x", ["n"])], [small_models.floats("y", ["n"])]
    session = new_session(small_models.model([helper.make_node("Relu", ["x"], ["y"])], *ends), providers=[provider])
    with pytest.raises(OutOfMemory):
        session.run(None, {"x": np.zeros(1_200_000_000, np.float32)})
    assert session.run(None, {"x": np.float32([-1, 2])})[0].tolist() == [0, 2]


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_weights_that_lie_beyond_4_gb(tmp_path, provider):
    """In a file that is mostly a hole, so that it costs nothing; only the weights are read."""
    weights, nodes = [], []
    matrices = np.random.default_rng(0).standard_normal((len(OFFSETS), 64, 64)).astype(np.float32)
    with (tmp_path / "weights.bin").open("wb") as file:
        for layer, (offset, matrix) in enumerate(zip(OFFSETS, matrices, strict=True)):
            file.seek(offset)
            file.write(matrix.data)
            tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=matrix.shape)
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "weights.bin"), ("offset", offset), ("length", matrix.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
            weights.append(tensor)
            nodes.append(helper.make_node("MatMul", [f"x{layer}", f"w{layer}"], [f"x{layer + 1}"]))
    status = (tmp_path / "weights.bin").stat()
    if status.st_blocks * 512 > GB:
        pytest.skip("files have no holes here")
    assert status.st_size > 4 * GB
    ends = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [1, 64]) for i in (0, len(OFFSETS))]
    graph = helper.make_graph(nodes, "holes", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    x = np.ones((1, 64), np.float32)
    with InferenceSession(tmp_path / "m.onnx", providers=[provider], browser=BROWSER) as session:
        (y,) = session.run(None, {"x0": x})
    np.testing.assert_allclose(y, x @ matrices[0] @ matrices[1] @ matrices[2], rtol=1e-3, atol=1e-2)

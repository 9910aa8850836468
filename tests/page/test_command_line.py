"""The command `py-ort`, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import small_models


@pytest.fixture
def model(tmp_path) -> Path:
    path = tmp_path / "add.onnx"
    path.write_bytes(small_models.add())
    return path


def py_ort(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "py_ort.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_run(model, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    done = py_ort(
        *("run", model, "--input", f"x={tmp_path / 'x.npy'}", "--random", "--json"),
        *("--provider", "wasm", "--output-dir", tmp_path / "out"),
    )
    said = json.loads(done.stdout)
    assert said["nodes"] == {"wasm": 1} and said["providers"] == ["CPUExecutionProvider"]
    assert said["outputs"][0]["shape"] == [2, 3] and said["create_ms"] > 0
    assert np.load(said["outputs"][0]["file"]).shape == (2, 3)
    assert "reading the model" in done.stderr


def test_run_prints_a_table(model):
    done = py_ort("run", model, "--random", "--provider", "webgpu", "--webgpu", "software", "--launcher", "process")
    assert "1 on webgpu" in done.stdout and "float32" in done.stdout and "swiftshader" in done.stdout


def test_placement(model):
    options = ("--provider", "webgpu", "--webgpu", "software")
    (node,) = json.loads(py_ort("placement", model, "--json", *options).stdout)["nodes"]
    assert node["op_type"] == "Add" and node["provider"] == "webgpu"
    assert "1 nodes on webgpu" in py_ort("placement", model, *options).stdout


def test_browsers():
    found = json.loads(py_ort("browsers", "--webgpu", "software", "--json").stdout)
    assert "hromium" in found[0]["version"] and "swiftshader" in found[0]["adapter"]
    assert found[0]["cross_origin_isolated"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("run", "/no/such.onnx"), ["NoSuchFile", "/no/such.onnx"]),
        (("run", __file__), ["InvalidProtobuf"]),
        (("browsers", "--browser", "/no/such/browser"), ["BrowserNotFound", "/no/such/browser"]),
    ],
    ids=["no file", "no model", "no browser"],
)
def test_errors_are_one_message_and_status_1(arguments, words):
    done = py_ort(*arguments, status=1)
    assert "Traceback" not in done.stderr
    assert all(word in done.stderr for word in words)


def test_a_missing_feed(model):
    done = py_ort("run", model, "--provider", "wasm", status=1)
    assert "InvalidArgument" in done.stderr and "'x'" in done.stderr

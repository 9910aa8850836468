"""Tables of tiles: `py-ort tune` measures them on a device, and sessions there use them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from native import native_session
from onnx import TensorProto, helper, numpy_helper

from py_ort import InferenceSession, SessionOptions
from py_ort.cli import cli
from py_ort.exceptions import InvalidArgument
from py_ort.profiling import Trace
from py_ort.runtime.tile_tables import Measured, TileTables, TunedDevice
from py_ort.runtime.tile_tuning import _times

pytestmark = pytest.mark.browser
NewSession = Callable[..., InferenceSession]
PRODUCT, WINDOWS = "matrix_50x40x96x1_44", "windows_400x32x72x1_44"


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TileTables:
    """Return the tables of a cache of the test's own."""
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path / "plans"))
    monkeypatch.delenv("PY_ORT_CACHE", raising=False)
    found = TileTables.default()
    assert found is not None and not found.entries()
    return found


@pytest.fixture(scope="module")
def model() -> bytes:
    """A product and a convolution."""
    rng = np.random.default_rng(0)
    weights = {"w": (96, 40), "c": (32, 8, 3, 3)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Conv", ["i", "c"], ["z"], pads=[1] * 4)]
    shapes = {"x": [50, 96], "i": [1, 8, 20, 20], "y": [50, 40], "z": [1, 32, 20, 20]}
    info = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in shapes.items()}
    initializers = [
        numpy_helper.from_array(rng.standard_normal(shape, np.float32), name) for name, shape in weights.items()
    ]
    graph = helper.make_graph(nodes, "g", [info["x"], info["i"]], [info["y"], info["z"]], initializers)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.fixture
def launched(tmp_path: Path, model: bytes, new_session: NewSession) -> Callable[..., set[str]]:
    """Runs the model, compares with native onnxruntime, and returns the shaders' names."""

    def run(**entries: str) -> set[str]:
        options = SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
        for name, value in entries.items():
            options.add_session_config_entry(f"session.{name}", value)
        session = new_session(model, options, providers=["webgpu"])
        rng = np.random.default_rng(1)
        feeds = {arg.name: rng.standard_normal(arg.shape, np.float32) for arg in session.get_inputs()}
        native = native_session(model)
        for found, wanted in zip(session.run(None, feeds), native.run(None, feeds), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
        return {row.kernel for row in Trace.load(session.end_profiling()).kernels()}

    return run


@pytest.fixture
def device(model: bytes, new_session: NewSession) -> TunedDevice:
    session = new_session(model, providers=["webgpu"])
    told = session._opened.runtime.tuned_device
    assert told is not None
    return TunedDevice.of(session.browser, told)


def planted(tile: str, windows: str) -> dict[str, Measured]:
    return {PRODUCT: Measured(tile, 1, "8x16_rows", 2), WINDOWS: Measured(windows, 1, "8x16_rows", 2)}


def test_a_planted_table_decides(tables: TileTables, device: TunedDevice, launched: Callable[..., set[str]]) -> None:
    usual = launched()
    assert "gemm__sw_4x4" not in usual and "conv__sw_8x8_shared" not in usual
    tables.add(device, planted("4x4_columns", "8x8_rows"))
    assert {"gemm__sw_4x4", "conv__sw_8x8_shared"} <= launched()
    # Others are unchanged, as is everything without tables or a cache.
    assert launched(tiles="0") == launched(plan_cache="0") == usual
    tables.add(device, {PRODUCT: Measured("1x4_columns", 1, "8x16_rows", 2)})
    assert {"gemm__sw_1x4", "conv__sw_8x8_shared"} <= launched()


@pytest.mark.parametrize("change", [{"browser": "chromium 1.2.3"}, {"vendor": "nobody"}, {"description": "another"}])
def test_a_table_of_another_device_is_not_taken(
    change: dict[str, str], tables: TileTables, device: TunedDevice, launched: Callable[..., set[str]]
) -> None:
    usual = launched()
    other = replace(device, **change)
    tables.add(other, planted("4x4_columns", "8x8_rows"))
    assert launched() == usual
    # Nor under this device's name.
    (table,) = tables.entries()
    table.path.rename(table.path.with_name(f"{device.key}.tiles"))
    assert launched() == usual


def test_tiles_that_are_no_more(tables: TileTables, device: TunedDevice, launched: Callable[..., set[str]]) -> None:
    usual = launched()
    tables.add(device, planted("3x3_spirals", "8x16_rows"))
    assert launched() == usual


def test_a_damaged_table(
    tables: TileTables, device: TunedDevice, launched: Callable[..., set[str]], caplog: pytest.LogCaptureFixture
) -> None:
    usual = launched()
    tables.add(device, planted("4x4_columns", "8x8_rows"))
    (table,) = tables.entries()
    table.path.write_text(json.dumps({"version": 1, "device": 3}))
    assert launched() == usual
    assert any("is not used" in record.getMessage() for record in caplog.records)


def test_a_table_of_a_file(tmp_path: Path, model: bytes, launched: Callable[..., set[str]]) -> None:
    file = tmp_path / "tiles.json"
    file.write_text(json.dumps({PRODUCT: "8x4_rows", "*": "4x4_columns"}))
    assert {"gemm__sw_8x4_shared", "conv__sw_4x4"} <= launched(tiles=str(file))
    for text, says in (("{", "cannot be read"), ("[1]", "is no JSON object of products"), ('{"*": 1}', "is no JSON")):
        file.write_text(text)
        with pytest.raises(InvalidArgument, match=f"session.tiles=.*{says}"):
            launched(tiles=str(file))


def test_a_wrong_entry_costs_no_plan(
    tmp_path: Path, model: bytes, tables: TileTables, new_session: NewSession, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(model)
    new_session(file, providers=["webgpu"])
    deadline = time.monotonic() + 30  # plans are written in the background
    while not (plans := list(tables.folder.glob("*.plan"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    options = SessionOptions()
    options.add_session_config_entry("session.tiles", str(tmp_path / "missing.json"))
    with pytest.raises(InvalidArgument, match="cannot be read"):
        new_session(file, options, providers=["webgpu"])
    assert plans and list(tables.folder.glob("*.plan")) == plans
    assert not any("is not used" in record.getMessage() for record in caplog.records)


def test_tune(
    tmp_path: Path, model: bytes, tables: TileTables, device: TunedDevice, launched: Callable[..., set[str]]
) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(model)
    done = CliRunner().invoke(cli, ["tune", str(file), "--runs", "2", "--json", "-"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["device"] == asdict(device) and set(told["products"]) == {PRODUCT, WINDOWS} and not told["refused"]
    (table,) = tables.entries()
    assert table.device == device
    for name, measured in table.products.items():
        assert asdict(measured) == told["products"][name]
        assert 0 < measured.ms <= measured.usual_ms
        assert measured.tile == measured.usual or measured.ms < measured.usual_ms
    kind = {PRODUCT: "gemm", WINDOWS: "conv"}
    taken = {f"{kind[name]}__sw_{one.tile.split('_')[0]}" for name, one in table.products.items()}
    assert taken <= {shader.removesuffix("_shared") for shader in launched()}

    shown = CliRunner().invoke(cli, ["cache"], catch_exceptions=False).stdout
    assert f"tiles of 2 products, measured on {device.name}" in shown
    listed = json.loads(CliRunner().invoke(cli, ["cache", "--json", "-"], catch_exceptions=False).stdout)
    assert listed["tiles"] == [{"device": told["device"], "products": told["products"]}]
    CliRunner().invoke(cli, ["cache", "--clear"], catch_exceptions=False)
    assert not tables.entries()


def test_tune_with_subgroup_matrices(tmp_path: Path, model: bytes, tables: TileTables) -> None:
    """No software adapter has them: the session says so, and the other tiles are measured."""
    file = tmp_path / "model.onnx"
    file.write_bytes(model)
    # In a separate process, and so in a separate page: an open device keeps its features.
    command = [sys.executable, "-m", "py_ort.cli", "tune", str(file), "--runs", "1", "--subgroup-matrix"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "subgroupMatrix has no effect" in done.stderr
    assert len(tables.entries()) == 1


def test_timing_each_launch_is_not_counted() -> None:
    """Two dispatches of 7 us that take 9 together cost 2.5 us each for being timed."""
    tiling = {"product": "p", "tile": "t", "choices": ["t"]}
    events = []
    for run in range(6):
        args = {"run": run}
        if run % 2:
            events.append(
                {"ph": "X", "cat": "Session", "dur": 1, "args": {**args, "gpu_ms": 0.009, "gpu_span_ms": 0.01}}
            )
        else:
            events += [{"ph": "X", "cat": "Kernel", "dur": 7, "args": {**args, "tiling": tiling}}] * 2
    usual = _times(Trace(events), [], None)
    assert (usual.launch_ms, usual.ms) == (pytest.approx(0.0025), {"p": pytest.approx(0.009)})
    less = _times(Trace(events), [], 0.001)
    assert less.ms == {"p": pytest.approx(0.012)}


def test_nowhere_to_keep_it(tmp_path: Path, model: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY_ORT_CACHE", "0")
    (tmp_path / "model.onnx").write_bytes(model)
    done = CliRunner().invoke(cli, ["tune", str(tmp_path / "model.onnx")])
    assert done.exit_code == 1 and "plan cache is switched off" in done.output
    assert TileTables.default() is None


def test_a_folder_that_cannot_be_written(tmp_path: Path, model: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error occurs before anything is measured."""
    file = tmp_path / "model.onnx"
    file.write_bytes(model)
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(file / "plans"))
    monkeypatch.delenv("PY_ORT_CACHE", raising=False)
    done = CliRunner().invoke(cli, ["tune", str(file)])
    assert done.exit_code == 1 and "nothing can be kept in" in done.output and "PY_ORT_CACHE_DIR" in done.output
    assert "measuring tiles" not in done.output and "starting the browser" not in done.output

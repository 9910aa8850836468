"""Tables of tiles: `py-ort tune` measures them on a device, and sessions there use them."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from array_models import assert_as_native, random_floats
from session_settings import settings
from text_form import parse
from waiting import wait_until

from py_ort import InferenceSession
from py_ort.exceptions import InvalidArgument
from py_ort.profiling import Trace
from py_ort.runtime.tile_tables import Measured, TileTables, TunedDevice
from py_ort.runtime.tile_tuning import _times

NewSession = Callable[..., InferenceSession]
PRODUCT, WINDOWS = "matrix_50x40x96x1_44", "windows_400x32x72x1_44"


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Return the tables of a cache of the test's own."""
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path / "plans"))
    monkeypatch.delenv("PY_ORT_CACHE", raising=False)
    found = TileTables.default()
    assert found is not None and not found.entries()
    return found


@pytest.fixture(scope="module")
def model():
    """A product and a convolution."""
    text = """g (float[50,96] x, float[1,8,20,20] i) => (float[50,40] y, float[1,32,20,20] z) {
        y = MatMul(x, w)  z = Conv<pads=[1,1,1,1]>(i, c) }"""
    return parse(text, random_floats(0, w=(96, 40), c=(32, 8, 3, 3))).SerializeToString()


@pytest.fixture
def file(tmp_path, model):
    """The model's file."""
    (tmp_path / "model.onnx").write_bytes(model)
    return tmp_path / "model.onnx"


@pytest.fixture
def launched(tmp_path, model, new_session):
    """Runs the model, compares with native onnxruntime, and returns the shaders' names."""

    def run(**entries: str) -> set[str]:
        options = settings(tmp_path, entries={f"session.{name}": value for name, value in entries.items()})
        session = new_session(model, options, providers=["webgpu"])
        feeds = random_floats(1, x=(50, 96), i=(1, 8, 20, 20))
        assert_as_native(session, model, feeds, rtol=1e-4, atol=1e-4)
        return {row.kernel for row in Trace.load(session.end_profiling()).kernels()}

    return run


@pytest.fixture
def device(model, new_session):
    session = new_session(model, providers=["webgpu"])
    told = session._opened.runtime.tuned_device
    assert told is not None
    return TunedDevice.of(session.browser, told)


def planted(tile: str, windows: str) -> dict[str, Measured]:
    return {PRODUCT: Measured(tile, 1, "8x16_rows", 2), WINDOWS: Measured(windows, 1, "8x16_rows", 2)}


def test_a_planted_table_decides(tables, device, launched):
    usual = launched()
    assert "gemm__sw_4x4" not in usual and "conv__sw_8x8_shared" not in usual
    tables.add(device, planted("4x4_columns", "8x8_rows"))
    assert {"gemm__sw_4x4", "conv__sw_8x8_shared"} <= launched()
    # Others are unchanged, as is everything without tables or a cache.
    assert launched(tiles="0") == launched(plan_cache="0") == usual
    tables.add(device, {PRODUCT: Measured("1x4_columns", 1, "8x16_rows", 2)})
    assert {"gemm__sw_1x4", "conv__sw_8x8_shared"} <= launched()


@pytest.mark.parametrize("change", [{"browser": "chromium 1.2.3"}, {"vendor": "nobody"}, {"description": "another"}])
def test_a_table_of_another_device_is_not_taken(change, tables, device, launched):
    usual = launched()
    other = replace(device, **change)
    tables.add(other, planted("4x4_columns", "8x8_rows"))
    assert launched() == usual
    # Nor under this device's name.
    (table,) = tables.entries()
    table.path.rename(table.path.with_name(f"{device.key}.tiles"))
    assert launched() == usual


def test_tiles_that_are_no_more(tables, device, launched):
    usual = launched()
    tables.add(device, planted("3x3_spirals", "8x16_rows"))
    assert launched() == usual


def test_a_damaged_table(tables, device, launched, caplog):
    usual = launched()
    tables.add(device, planted("4x4_columns", "8x8_rows"))
    (table,) = tables.entries()
    table.path.write_text(json.dumps({"version": 1, "device": 3}))
    assert launched() == usual
    assert any("is not used" in record.getMessage() for record in caplog.records)


def test_a_table_of_a_file(tmp_path, model, launched):
    file = tmp_path / "tiles.json"
    file.write_text(json.dumps({PRODUCT: "8x4_rows", "*": "4x4_columns"}))
    assert {"gemm__sw_8x4_shared", "conv__sw_4x4"} <= launched(tiles=str(file))
    for text, says in (("{", "cannot be read"), ("[1]", "is no JSON object of products"), ('{"*": 1}', "is no JSON")):
        file.write_text(text)
        with pytest.raises(InvalidArgument, match=f"session.tiles=.*{says}"):
            launched(tiles=str(file))


def test_a_wrong_entry_costs_no_plan(tmp_path, file, tables, new_session, caplog):
    new_session(file, providers=["webgpu"])
    plans = wait_until(lambda: list(tables.folder.glob("*.plan")))  # they are written in the background
    options = settings(entries={"session.tiles": str(tmp_path / "missing.json")})
    with pytest.raises(InvalidArgument, match="cannot be read"):
        new_session(file, options, providers=["webgpu"])
    assert list(tables.folder.glob("*.plan")) == plans
    assert not any("is not used" in record.getMessage() for record in caplog.records)


def test_tune(file, tables, device, launched, py_ort_command):
    status, out, err = py_ort_command("tune", file, "--runs", 2, "--json", "-")
    assert status == 0, err
    told = json.loads(out)
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

    assert f"tiles of 2 products, measured on {device.name}" in py_ort_command("cache")[1]
    listed = json.loads(py_ort_command("cache", "--json", "-")[1])
    assert listed["tiles"] == [{"device": told["device"], "products": told["products"]}]
    py_ort_command("cache", "--clear")
    assert not tables.entries()


def test_tune_with_subgroup_matrices(file, tables):
    """No software adapter has them: the session says so, and the other tiles are measured."""
    # In a separate process, and so in a separate page: an open device keeps its features.
    command = [sys.executable, "-m", "py_ort.cli", "tune", str(file), "--runs", "1", "--subgroup-matrix"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "subgroupMatrix has no effect" in done.stderr
    assert len(tables.entries()) == 1


def test_timing_each_launch_is_not_counted():
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


def test_nowhere_to_keep_it(file, monkeypatch, py_ort_command):
    monkeypatch.setenv("PY_ORT_CACHE", "0")
    status, out, err = py_ort_command("tune", file)
    assert status == 1 and "plan cache is switched off" in out + err
    assert TileTables.default() is None


def test_a_folder_that_cannot_be_written(file, monkeypatch, py_ort_command):
    """The error occurs before anything is measured."""
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(file / "plans"))
    monkeypatch.delenv("PY_ORT_CACHE", raising=False)
    status, out, err = py_ort_command("tune", file)
    assert status == 1 and "nothing can be kept in" in err and "PY_ORT_CACHE_DIR" in err
    assert "measuring tiles" not in out + err and "starting the browser" not in out + err

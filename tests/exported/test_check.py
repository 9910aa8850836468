"""`py-ort export --check`: the exported file, in the installed browsers, compared with native onnxruntime."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import small_models
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import py_ort
from py_ort.browser import find
from py_ort.cli.export import export
from py_ort.exceptions import InvalidArgument

pytestmark = pytest.mark.browser
CHROMIUM = py_ort.BrowserOptions(webgpu="software")


def exported(tmp_path: Path, model: bytes, **options: object) -> Path:
    py_ort.export(model, tmp_path / "net.pyort", **options)
    return tmp_path / "net.pyort"


@pytest.mark.parametrize("family", find.FAMILIES)
def test_every_installed_browser(tmp_path: Path, family: str) -> None:
    if not find.installed(family) or (family == "webkit" and not shutil.which("Xvfb")):
        pytest.skip(f"{family} is not installed")
    file = exported(tmp_path, small_models.two_products(), part_size=4096)
    assert (tmp_path / "net.pyort.1").exists()
    report = py_ort.check_export(file, small_models.two_products(), browsers=[family])
    outcomes = {row.provider: row.outcome for row in report.rows}
    assert outcomes["wasm"] == "same" and outcomes["webgpu"] in ("same", "not there"), report.rows
    assert report.reference == f"onnxruntime {onnxruntime.__version__}"
    assert report.ok == (outcomes["webgpu"] == "same") and report.unchecked == ([] if report.ok else ["webgpu"])
    for row in report.rows:
        if row.outcome == "same":
            assert row.difference is not None and row.difference < 1e-4 and row.load_ms and row.second_run_ms
        else:
            assert "WebGPU" in row.detail


def test_types_of_all_kinds(tmp_path: Path) -> None:
    """Strings, integers of 64 bits, booleans, halves and sequences are passed unchanged."""
    kinds = {"s": TensorProto.STRING, "i": TensorProto.INT64, "b": TensorProto.BOOL, "h": TensorProto.FLOAT16}
    values = [helper.make_tensor_value_info(name, kind, ["N"]) for name, kind in kinds.items()]
    outputs = [helper.make_tensor_value_info(f"{name}_out", kind, ["N"]) for name, kind in kinds.items()]
    sequence = helper.make_tensor_sequence_value_info("sequence", TensorProto.INT64, None)
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in kinds]
    nodes.append(helper.make_node("SequenceConstruct", ["i", "i"], ["sequence"]))
    model = small_models.model(nodes, values, [*outputs, sequence])
    feeds = {
        "s": np.array(["", "ä€", "x"], object),
        "i": np.array([-1, 2**53 + 1, 0]),
        "b": np.array([True, False, True]),
        "h": np.array([1, np.inf, -0.5], np.float16),
    }
    report = py_ort.check_export(exported(tmp_path, model, providers=["wasm"]), model, feeds, browsers=[CHROMIUM])
    assert [(row.outcome, row.detail) for row in report.rows] == [("same", "")]


def test_what_differs_and_what_fails(tmp_path: Path) -> None:
    file = exported(tmp_path, small_models.add(), providers=["wasm"])
    feeds = {"x": np.full((2, 3), 3, np.float32), "scale": np.ones(3, np.float32)}
    less = small_models.add().replace(b"Add", b"Sub")
    (row,) = py_ort.check_export(file, less, feeds, browsers=[CHROMIUM]).rows
    assert row.outcome == "differs" and "output 'y': 6 of 6 elements differ, first at [0, 0]: got 4.0" in row.detail
    assert py_ort.check_export(file, less, feeds, browsers=[CHROMIUM], tolerance=1e9).ok

    file = exported(tmp_path, small_models.gather(), providers=["wasm"])
    report = py_ort.check_export(file, None, {"index": np.array([9])}, browsers=[CHROMIUM])
    assert not report.ok and report.rows[0].outcome == "failed" and "out of range" in report.rows[0].detail

    with pytest.raises(InvalidArgument, match="no input 'z'"):
        py_ort.check_export(file, None, {"z": np.array([9])}, browsers=[CHROMIUM])
    late = py_ort.check_export(file, None, browsers=[CHROMIUM], timeout=1e-3)
    assert not late.ok and "did not run the model within 0.001 s" in late.rows[0].detail
    missing = py_ort.check_export(file, None, browsers=[py_ort.BrowserOptions(browser="/none/such")])
    assert not missing.ok and "/none/such" in missing.rows[0].detail


def test_without_onnxruntime_wasm_is_the_judge(tmp_path: Path) -> None:
    report = py_ort.check_export(exported(tmp_path, small_models.add()), browsers=[CHROMIUM])
    assert report.ok and [row.provider for row in report.rows] == ["webgpu", "wasm"]
    assert report.reference.startswith("wasm in chromium ") and report.without == "no ONNX model was given"

    refused = py_ort.check_export(tmp_path / "net.pyort", small_models.unknown_operator(), browsers=[CHROMIUM])
    assert refused.ok and refused.reference == report.reference and "Frobnicate" in refused.without


def test_sizes_that_the_model_takes(tmp_path: Path) -> None:
    """An image has a size that native onnxruntime accepts: after a refusal others are tried."""
    weight = numpy_helper.from_array(np.ones((3 * 48 * 320, 2), np.float32), "w")
    model = small_models.model(
        [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["y"])],
        [small_models.floats("image", [1, 3, "H", "W"])],
        [small_models.floats("y", [1, 2])],
        [weight],
    )
    report = py_ort.check_export(exported(tmp_path, model, providers=["wasm"]), model, browsers=[CHROMIUM])
    assert report.ok and report.feeds == {"image": "float32 [1, 3, 48, 320]"} and report.without == ""


def test_the_command(tmp_path: Path) -> None:
    """A table, reports next to the file, and a status; sizes and files of inputs as for `py-ort run`."""
    model, npy = tmp_path / "net.onnx", tmp_path / "x.npy"
    model.write_bytes(small_models.two_products())
    np.save(npy, np.full((3, 4, 8, 8), 0.5, np.float32))
    arguments = [str(model), "-o", str(tmp_path), "--check", "--browser", "chromium", "--shape", "x=2x4x8x8"]
    done = CliRunner().invoke(export, [*arguments, "--input", f"x={npy}"])
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "net.check.json").read_text())
    assert told["ok"] and told["feeds"] == {"x": "float32 [3, 4, 8, 8]"}
    plans = [(row["provider"], row["shapes"].get("x"), row["outcome"]) for row in told["rows"]]
    shape = [2, 4, 8, 8]
    assert plans == [
        ("webgpu", None, "same"),
        ("webgpu", shape, "same"),
        ("wasm", None, "same"),
        ("wasm", shape, "same"),
    ]
    page = (tmp_path / "net.check.html").read_text()
    assert "webgpu for x 2x4x8x8" in page and "the same everywhere" in page

    fixed = CliRunner().invoke(export, [*arguments[:-2], "--dim", "N=5", "--provider", "wasm"])
    assert fixed.exit_code == 0, fixed.output
    assert json.loads((tmp_path / "net.check.json").read_text())["feeds"] == {"x": "float32 [5, 4, 8, 8]"}

    wrong = CliRunner().invoke(export, [*arguments[:-2], "--provider", "wasm", "--tolerance", "0"])
    assert wrong.exit_code == 1 and "differs" in wrong.output
    assert "not the same everywhere" in (tmp_path / "net.check.html").read_text()
    assert CliRunner().invoke(export, [str(model), "--input", f"x={npy}"]).exit_code == 2

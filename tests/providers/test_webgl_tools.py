"""WebGL in order with other providers, and in the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_models
from click.testing import CliRunner

import py_ort
from py_ort import BrowserOptions
from py_ort.cli import cli
from py_ort.profiling import Trace

pytestmark = pytest.mark.browser
SOFTWARE = BrowserOptions(webgpu="software")
WITHOUT_WEBGPU = BrowserOptions(webgpu="off", flags=("--enable-unsafe-swiftshader",))
FEEDS = {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)}


@pytest.mark.parametrize(("options", "first"), [(SOFTWARE, "webgpu"), (WITHOUT_WEBGPU, "webgl")], ids=["both", "webgl"])
def test_the_first_provider_with_a_device_runs(options: BrowserOptions, first: str) -> None:
    order = ["webgpu", "webgl", "wasm"]
    with py_ort.InferenceSession(small_models.add(), providers=order, browser=options) as session:
        assert session.placement().counts()[first] == 1
        assert session.run(None, FEEDS)[0].tolist() == [[2, 2, 2]]


def test_browsers_tells_of_it() -> None:
    done = CliRunner().invoke(cli, ["browsers", "--browser", "chromium", "--json", "-"])
    [found] = json.loads(done.stdout)
    assert found["devices"]["webgl"]["description"]
    assert found["devices"]["webgl"]["limits"]["maxTextureSize"] >= 2048


def test_a_profile_without_the_times_of_the_gpu(tmp_path: Path) -> None:
    """The rows of dispatches are there; SwiftShader has no queries, and a note says so."""
    options = py_ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "p")
    with py_ort.InferenceSession(small_models.add(), options, providers=["webgl"], browser=SOFTWARE) as session:
        session.run(None, FEEDS)
        [row] = session.stats()["last_run"]["profile"]
        trace = Trace.load(session.end_profiling())
    assert row["op_type"] == "Add" and row["kernel"] and row.get("ms") is None
    assert ["EXT_disjoint_timer_query_webgl2" in note for note in trace.notes()] == [True]


def test_exported_with_a_page(tmp_path: Path) -> None:
    """The page and the check load WebGL late, as pages do."""
    model = tmp_path / "add.onnx"
    model.write_bytes(small_models.add())
    command = ["export", str(model), "-o", str(tmp_path / "out"), "--provider", "webgl", "--page", "--check"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    assert "webgl" in done.output
    assert len(list((tmp_path / "out").rglob("provider_webgl.mjs"))) == 1

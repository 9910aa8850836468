"""`py-ort export --page --runtime minimal`: a runtime with the kernels of the folder's models only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import small_models
from click.testing import CliRunner
from one_model_page import run_in_page
from static_site import StaticSite

import py_ort
from py_ort.cli.export import export
from py_ort.exceptions import InvalidArgument
from py_ort.exporting.runtime_files import RARE_KERNELS
from py_ort.folders import ASSETS

MODELS = {"products": small_models.two_products(), "lstm": small_models.recurrent()}
FEEDS = {
    "products": np.random.default_rng(3).standard_normal((2, 4, 8, 8)).astype(np.float32),
    "lstm": np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 2, 3),
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[StaticSite]:
    """Serve the page of one model."""
    export_minimal("products", tmp_path)
    site = StaticSite(tmp_path)
    yield site
    site.close()


def export_minimal(name: str, folder: Path, **options: Any) -> list[Path]:
    return py_ort.export(MODELS[name], folder / f"{name}.pyort", page=True, runtime="minimal", **options)


def told_by(site: StaticSite, name: str, provider: str = "webgpu", thread: str = "worker") -> dict[str, Any]:
    feeds = {"x": FEEDS[name]}
    return run_in_page(site, f"{name}.pyort", feeds, provider, runtime="./py_ort/py_ort.mjs", thread=thread)


def check(site: StaticSite, name: str, provider: str = "webgpu", thread: str = "worker") -> None:
    told = told_by(site, name, provider, thread)
    (y,) = onnxruntime.InferenceSession(MODELS[name]).run(None, {"x": FEEDS[name]})
    assert "outputs" in told, told
    np.testing.assert_allclose(told["outputs"]["y"], y.ravel(), rtol=1e-4, atol=1e-4)


@pytest.mark.browser
@pytest.mark.parametrize(("provider", "thread"), [("webgpu", "worker"), ("webgpu", "page"), ("wasm", "worker")])
def test_it_runs_its_model(site: StaticSite, provider: str, thread: str) -> None:
    check(site, "products", provider, thread)
    assert ("/py_ort/session_worker.minimal.mjs" in site.asked) == ((provider, thread) == ("webgpu", "worker"))


@pytest.mark.browser
def test_a_model_with_other_kernels_is_refused_until_it_is_exported_there(site: StaticSite) -> None:
    py_ort.export(MODELS["lstm"], site.folder / "lstm.pyort")
    error = told_by(site, "lstm")["error"]
    assert "no WebGPU kernel for LSTM in this runtime" in error and "without --runtime minimal" in error, error
    export_minimal("lstm", site.folder)
    check(site, "lstm")
    check(site, "products")


def test_it_has_the_kernels_of_the_model(tmp_path: Path) -> None:
    export_minimal("products", tmp_path)
    written = (tmp_path / "py_ort/session_worker.minimal.mjs").read_text()
    assert len(written) < 0.8 * (ASSETS / "session_worker.mjs").stat().st_size
    modules = re.findall(r'"([\w/]+)":\(require,module\)=>', written)
    assert {"convolution/conv/index", "convolution/conv_transpose/index", "reduction/reduce"} <= set(modules)
    assert not [name for name in modules if re.match("recurrent|attention|quantization/products|counted", name)]


def test_a_runtime_takes_the_place_of_another(tmp_path: Path) -> None:
    def names() -> set[str]:
        return {file.name for file in (tmp_path / "py_ort").iterdir()}

    py_ort.export(MODELS["products"], tmp_path / "products.pyort", page=True)
    whole = names()
    export_minimal("products", tmp_path)
    assert {"session_worker.minimal.mjs", "core.wasm"} <= names()
    assert names().isdisjoint({"session_worker.mjs", "provider_webnn.mjs", RARE_KERNELS})
    export_minimal("lstm", tmp_path)
    assert RARE_KERNELS in names(), "its plan for wasm has an LSTM on the CPU"
    py_ort.export(MODELS["products"], tmp_path / "products.pyort", page=True)
    assert names() == whole


def test_plans_for_other_providers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="has a plan for webgl, and a minimal runtime has webgpu and wasm only"):
        export_minimal("products", tmp_path, providers=["webgl"])
    with pytest.raises(InvalidArgument, match="page=True"):
        py_ort.export(MODELS["products"], tmp_path / "products.pyort", runtime="minimal")


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(MODELS["products"])
    command = [str(tmp_path / "net.onnx"), "-o", str(tmp_path / "site"), "--runtime", "minimal"]
    refused = CliRunner().invoke(export, command)
    assert refused.exit_code == 2 and "--runtime is for --page" in refused.output
    done = CliRunner().invoke(export, [*command, "--page"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "site/py_ort/session_worker.minimal.mjs").is_file()

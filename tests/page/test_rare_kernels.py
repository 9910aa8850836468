"""rare_kernels.wasm: the kernels on the CPU that few models need, in pages and in the build."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import small_models
from one_model_page import run_in_page
from static_site import ISOLATED, StaticSite

import py_ort
from py_ort.exporting.runtime_files import RARE_KERNELS, copy_runtime
from py_ort.folders import ASSETS

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 2, 3)
Served = Callable[..., StaticSite]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Served]:
    """Serve a runtime and the model of an LSTM."""
    copy_runtime(tmp_path)
    py_ort.export(small_models.recurrent(), tmp_path / "lstm.pyort", providers=["wasm"])
    sites: list[StaticSite] = []

    def start(headers: dict[str, str] | None = None) -> StaticSite:
        sites.append(StaticSite(tmp_path, headers))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


def is_right(told: dict[str, Any]) -> bool:
    (y,) = onnxruntime.InferenceSession(small_models.recurrent()).run(None, {"x": X})
    return np.allclose(told["outputs"]["y"], y.ravel(), atol=1e-5)


@pytest.mark.browser
@pytest.mark.parametrize("thread", ["worker", "page"])
@pytest.mark.parametrize("headers", [{}, ISOLATED], ids=["alone", "isolated"])
def test_a_session_that_needs_them_loads_them_once(serve: Served, headers: dict[str, str], thread: str) -> None:
    """Also on memory that threads share."""
    site = serve(headers)
    assert is_right(run_in_page(site, "lstm.pyort", {"x": X}, "wasm", thread=thread))
    assert site.asked.count(f"/{RARE_KERNELS}") == 1


@pytest.mark.browser
def test_other_sessions_load_none(serve: Served) -> None:
    site = serve()
    py_ort.export(small_models.two_products(), site.folder / "products.pyort", providers=["wasm"])
    session = py_ort.InferenceSession(site.folder / "products.pyort", providers=["wasm"])
    feeds = {
        arg.name: np.ones([2 if isinstance(d, str) else d for d in arg.shape], np.float32)
        for arg in session.get_inputs()
    }
    assert "outputs" in run_in_page(site, "products.pyort", feeds, "wasm")
    assert "/core.wasm" in site.asked and f"/{RARE_KERNELS}" not in site.asked


@pytest.mark.browser
def test_an_error_names_the_file_that_is_missing(serve: Served) -> None:
    site = serve()
    (site.folder / RARE_KERNELS).unlink()
    error = run_in_page(site, "lstm.pyort", {"x": X}, "wasm")["error"]
    assert f"{site.origin}/{RARE_KERNELS}" in error and "env.wasm.wasmPaths = { rareKernels: URL }" in error


def test_the_manifest_tells_which_kernels_are_rare() -> None:
    entries = json.loads((ASSETS / "kernels.wasm.json").read_text())
    rare = {entry["op_type"] for entry in entries if entry.get("rare")}
    assert {"LSTM", "QLinearConv", "TreeEnsemble"} <= rare
    of_common_models = [
        "Conv",
        "MatMul",
        "Gemm",
        "LayerNormalization",
        "MultiHeadAttention",
        "Softmax",
        "MaxPool",
        "Resize",
    ]
    assert rare.isdisjoint(of_common_models)

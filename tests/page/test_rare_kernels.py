"""rare_kernels.wasm: the kernels on the CPU that few models need, in pages and in the build."""

import json
from typing import Any

import numpy as np
import onnxruntime
import pytest
import small_models
from one_model_page import run_in_page
from static_site import ISOLATED

import py_ort
from py_ort.exporting.runtime_files import RARE_KERNELS, copy_runtime
from py_ort.folders import ASSETS

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 2, 3)


@pytest.fixture
def folder(tmp_path):
    """A runtime and the model of an LSTM."""
    copy_runtime(tmp_path)
    py_ort.export(small_models.recurrent(), tmp_path / "lstm.pyort", providers=["wasm"])
    return tmp_path


def is_right(told: dict[str, Any]) -> bool:
    (y,) = onnxruntime.InferenceSession(small_models.recurrent()).run(None, {"x": X})
    return np.allclose(told["outputs"]["y"], y.ravel(), atol=1e-5)


@pytest.mark.parametrize("thread", ["worker", "page"])
@pytest.mark.parametrize("headers", [{}, ISOLATED], ids=["alone", "isolated"])
def test_a_session_that_needs_them_loads_them_once(folder, serve, headers, thread):
    """Also on memory that threads share."""
    site = serve(folder, headers)
    assert is_right(run_in_page(site, "lstm.pyort", {"x": X}, "wasm", thread=thread))
    assert site.asked.count(f"/{RARE_KERNELS}") == 1


def test_other_sessions_load_none(folder, serve):
    site = serve(folder)
    py_ort.export(small_models.two_products(), folder / "products.pyort", providers=["wasm"])
    x = np.ones((2, 4, 8, 8), np.float32)
    assert "outputs" in run_in_page(site, "products.pyort", {"x": x}, "wasm")
    assert "/core.wasm" in site.asked and f"/{RARE_KERNELS}" not in site.asked


def test_an_error_names_the_file_that_is_missing(folder, serve):
    site = serve(folder)
    (folder / RARE_KERNELS).unlink()
    error = run_in_page(site, "lstm.pyort", {"x": X}, "wasm")["error"]
    assert f"{site.origin}/{RARE_KERNELS}" in error and "env.wasm.wasmPaths = { rareKernels: URL }" in error


def test_the_manifest_tells_which_kernels_are_rare():
    entries = json.loads((ASSETS / "kernels.wasm.json").read_text())
    rare = {entry["op_type"] for entry in entries if entry.get("rare")}
    assert {"LSTM", "QLinearConv", "TreeEnsemble"} <= rare
    common = {"Conv", "MatMul", "Gemm", "LayerNormalization", "MultiHeadAttention", "Softmax", "MaxPool", "Resize"}
    assert rare.isdisjoint(common)

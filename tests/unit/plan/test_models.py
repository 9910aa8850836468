"""Real models, compiled for both providers, have native onnxruntime's results."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import provisional
import pytest
from graphs import operators
from standard_form import run_native, standard_form

from py_ort.compiler import CompileOptions, compile_model

_found = importlib.util.find_spec("rapidocr_onnxruntime")
OCR = Path(_found.origin).parent / "models" if _found and _found.origin else None
pytestmark = pytest.mark.skipif(OCR is None, reason="needs the package rapidocr-onnxruntime")

DET, REC, CLS = "ch_PP-OCRv4_det_infer.onnx", "ch_PP-OCRv4_rec_infer.onnx", "ch_ppocr_mobile_v2.0_cls_infer.onnx"


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize(
    ("name", "shape"),
    [(DET, (1, 3, 96, 160)), (REC, (1, 3, 48, 160)), (REC, (3, 3, 48, 200)), (CLS, (2, 3, 48, 192))],
    ids=["det", "rec", "rec-batch", "cls"],
)
def test_ocr(name: str, shape: tuple[int, ...], provider: str) -> None:
    assert OCR is not None
    path = OCR / name
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    result = compile_model(path, providers=[provider, "wasm"], manifests=provisional.manifests())
    wanted = run_native(str(path), feeds, optimize=True)
    found = run_native(standard_form(result), feeds)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-3, atol=1e-3)


# A necessary transpose: at the input.
@pytest.mark.parametrize(
    ("name", "transposes", "at_most"), [(DET, 1, 104), (REC, 1, 80), (CLS, 1, 78)], ids=["det", "rec", "cls"]
)
def test_ocr_node_counts(name: str, transposes: int, at_most: int) -> None:
    assert OCR is not None
    result = compile_model(OCR / name, manifests=provisional.manifests(), options=CompileOptions())
    assert operators(result).get("Transpose", 0) == transposes
    assert len(result.placement.nodes) <= at_most
    assert not {"BatchNormalization", "Constant", "Identity", "Conv", "Shape"} & set(operators(result))

"""How many kernels a run launches on a software adapter, as the page counts, and that results are onnxruntime's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest
from test_light_models import with_weights
from yolo import yolo

import py_ort

_LIGHT = Path(onnx.backend.test.__file__).parent / "data/light"
_OCR = importlib.util.find_spec("rapidocr_onnxruntime")
_MODELS = Path(_OCR.origin).parent / "models" if _OCR and _OCR.origin else None
#: model, the input's shape, launches at most, in which run: what depends on shapes alone is not done again
CASES = {
    "YOLOv8n": ("yolo", (1, 3, 320, 320), 107, 1),
    "YOLOv8n, of any size": ("yolo of any size", (1, 3, 320, 320), 107, 2),
    "squeezenet": ("light_squeezenet.onnx", (1, 3, 224, 224), 36, 1),
    "ocr det": ("ch_PP-OCRv4_det_infer.onnx", (1, 3, 320, 320), 105, 1),
}


def _model(name: str) -> bytes:
    if name.startswith("yolo"):
        return yolo(320 if name == "yolo" else None).SerializeToString()
    if name.startswith("light"):
        return with_weights(onnx.load(_LIGHT / name)).SerializeToString()
    if _MODELS is None:
        pytest.skip("needs the package rapidocr-onnxruntime")
    return (_MODELS / name).read_bytes()


@pytest.mark.parametrize(("name", "shape", "limit", "run"), CASES.values(), ids=CASES)
def test_launches_of_a_run(new_session, name: str, shape: tuple[int, ...], limit: int, run: int) -> None:
    import onnxruntime

    data = _model(name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    native = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    (x,) = native.get_inputs()
    feeds = {x.name: np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    ours = py_ort.SessionOptions()
    ours.add_session_config_entry("session.specialize_shapes", "0")
    session = new_session(data, ours, providers=["webgpu"])
    (wanted,) = native.run(None, feeds)
    for _ in range(run):
        (found,) = session.run(None, feeds)
    largest = float(np.abs(wanted).max())
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * max(1, largest))
    assert 0 < session.stats()["last_run"]["counters"]["dispatches"] <= limit

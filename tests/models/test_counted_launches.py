"""The number of kernels that a run dispatches on a software adapter, by the page's counter; results are onnxruntime's.

Work that depends only on weights and shapes is done in the first run only.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest
from bert import bert
from native import native_session
from test_light_models import with_weights
from yolo import yolo

import py_ort

_LIGHT = Path(onnx.backend.test.__file__).parent / "data/light"
_OCR = importlib.util.find_spec("rapidocr_onnxruntime")
_MODELS = Path(_OCR.origin).parent / "models" if _OCR and _OCR.origin else None
#: model, the inputs' shape, most dispatches of the second run. Only the plan of "bert" has open sizes.
CASES = {
    "YOLOv8n, of any size": ("yolo", (1, 3, 160, 160), 83),
    "squeezenet": ("light_squeezenet.onnx", (1, 3, 224, 224), 31),
    "resnet50": ("light_resnet50.onnx", (1, 3, 224, 224), 57),
    "BERT": ("bert", (1, 128), 45),
    "BERT, of any size": ("bert of any size", (1, 128), 45),
    "ocr det": ("ch_PP-OCRv4_det_infer.onnx", (1, 3, 160, 160), 95),
    "ocr rec": ("ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 160), 64),
    "ocr cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192), 76),
}


def model_of(name: str) -> bytes:
    if name == "yolo":
        return yolo(None).SerializeToString()
    if name.startswith("bert"):
        return bert(layers=6, width=96, heads=12, length=128).SerializeToString()
    if name.startswith("light"):
        return with_weights(onnx.load(_LIGHT / name)).SerializeToString()
    if _MODELS is None:
        pytest.skip("needs the package rapidocr-onnxruntime")
    return (_MODELS / name).read_bytes()


@pytest.mark.parametrize(("name", "shape", "limit"), CASES.values(), ids=CASES)
def test_launches_of_a_run(new_session, name: str, shape: tuple[int, ...], limit: int) -> None:
    import onnxruntime

    data = model_of(name)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    native = native_session(data, options)
    rng = np.random.default_rng(0)
    feeds = {
        x.name: rng.integers(0, 2, shape)
        if x.type == "tensor(int64)"
        else rng.standard_normal(shape).astype(np.float32)
        for x in native.get_inputs()
    }
    ours = py_ort.SessionOptions()
    ours.add_session_config_entry("session.specialize_shapes", "first" if name == "bert" else "0")
    session = new_session(data, ours, providers=["webgpu"])
    wanted = native.run(None, feeds)
    for _ in range(2):
        found = session.run(None, feeds)
    for y, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-3 * max(1, float(np.abs(expected).max())))
    assert 0 < session.stats()["last_run"]["counters"]["dispatches"] <= limit

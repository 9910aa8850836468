"""How near the GPU memory between the nodes of real models is to the most that is needed at one time."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx.backend.test
import pytest

LIGHT = Path(onnx.backend.test.__file__).parent / "data/light"
_found = importlib.util.find_spec("rapidocr_onnxruntime")
OCR = Path(_found.origin).parent / "models" if _found and _found.origin else Path("rapidocr_onnxruntime")
#: Residual networks need more: a sum and its parts in two buffers, and what is between them in a third.
CASES = {
    "squeezenet": (LIGHT / "light_squeezenet.onnx", (1, 3, 224, 224), 1.1),
    "det": (OCR / "ch_PP-OCRv4_det_infer.onnx", (1, 3, 96, 96), 1.1),
    "cls": (OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192), 1.1),
    "resnet50": (LIGHT / "light_resnet50.onnx", (1, 3, 224, 224), 1.25),
}


@pytest.mark.parametrize("case", CASES)
def test_the_arena_is_near_the_lower_bound(case, new_session):
    path, shape, most = CASES[case]
    if not path.exists():
        pytest.skip(f"{path.name} is not installed")
    session = new_session(str(path), providers=["webgpu"])
    session.run(None, {session.get_inputs()[0].name: np.zeros(shape, np.float32)})
    told = session.memory()["webgpu"]
    assert told["peak"] > 0
    assert told["arena"] <= most * told["peak"]

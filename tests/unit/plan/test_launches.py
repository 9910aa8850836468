"""How many kernels a run launches on webgpu: nodes there that do more than rename axes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import onnx
import onnx.backend.test
import provisional
import pytest
from bert import bert

from py_ort.plan import CompileOptions, compile_model

_LIGHT = Path(onnx.backend.test.__file__).parent / "data" / "light"
_OCR = importlib.util.find_spec("rapidocr_onnxruntime")
_MODELS = Path(_OCR.origin).parent / "models" if _OCR and _OCR.origin else None
_VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")
#: file or layers of a BERT, sizes of the inputs' dimensions, launches at most
CASES = {
    "squeezenet": ("light_squeezenet.onnx", {}, 36),
    "resnet50": ("light_resnet50.onnx", {}, 60),
    "bert": (6, {"batch": 1, "sequence": 64}, 45),
    "bert, any size": (6, {}, 50),
    "ocr det": ("ch_PP-OCRv4_det_infer.onnx", {}, 110),
    "ocr rec": ("ch_PP-OCRv4_rec_infer.onnx", {}, 90),
    "ocr cls": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", {}, 78),
}


@pytest.mark.parametrize(("source", "sizes", "limit"), CASES.values(), ids=CASES)
def test_launches(source: str | int, sizes: dict[str, int], limit: int) -> None:
    if isinstance(source, int):
        model = bert(layers=source).SerializeToString()
    elif source.startswith("light"):
        model = (_LIGHT / source).read_bytes()
    elif _MODELS is None:
        pytest.skip("needs the package rapidocr-onnxruntime")
    else:
        model = (_MODELS / source).read_bytes()
    options = CompileOptions(free_dimension_overrides=sizes)
    result = compile_model(model, options=options, manifests=provisional.manifests(chains=True, columns=True))
    launched = [n.op_type for n in result.placement.nodes if n.provider == "webgpu" and n.op_type not in _VIEWS]
    assert 0 < len(launched) <= limit, launched

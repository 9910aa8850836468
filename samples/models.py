"""Three models in use, those that read text, as cases: `py-ort conformance samples/models.py`, `make matrix`."""

from pathlib import Path

import rapidocr_onnxruntime

from py_ort.testing import model_case

FOLDER = Path(rapidocr_onnxruntime.__file__).parent / "models"
CASES = [
    model_case(FOLDER / file, name, shapes={"x": shape})
    for name, file, shape in (
        ("text detection", "ch_PP-OCRv4_det_infer.onnx", (1, 3, 160, 160)),
        ("text direction", "ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
        ("text recognition", "ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 160)),
    )
]

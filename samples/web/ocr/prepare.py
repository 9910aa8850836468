"""Put a static site together that reads images: the page, the runtime, and PP-OCRv4's models, exported.

    python samples/web/ocr/prepare.py SITE && python3 -m http.server -d SITE

then open http://127.0.0.1:8000/ocr/. The models are those of the package rapidocr-onnxruntime.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import onnx

import py_ort
from py_ort.exporting.runtime_files import copy_runtime

HERE = Path(__file__).resolve().parent
MODELS = {
    "detection": "ch_PP-OCRv4_det_infer.onnx",
    "classification": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "recognition": "ch_PP-OCRv4_rec_infer.onnx",
}


def models_folder() -> Path:
    """Return where the package has its models."""
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the models are in a package: pip install rapidocr-onnxruntime")
    return Path(next(iter(spec.submodule_search_locations))) / "models"


def prepare(site: Path) -> None:
    """Write the site."""
    page, runtime = site / "ocr", site / "runtime"
    (page / "models").mkdir(parents=True, exist_ok=True)
    copy_runtime(runtime)
    for file in (*HERE.glob("*.html"), *HERE.glob("*.mjs"), HERE.parents[1] / "sample.png"):
        shutil.copy(file, page)
    source = models_folder()
    for name, file in MODELS.items():
        py_ort.export(source / file, page / "models" / f"{name}.pyort")
    model = onnx.load(source / MODELS["recognition"], load_external_data=False)
    (characters,) = (entry.value for entry in model.metadata_props if entry.key == "character")
    (page / "models/characters.json").write_text(json.dumps(characters.splitlines(), ensure_ascii=False))


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))

"""samples/web/ocr: PP-OCR's three models read an image in a page, from a plain file server."""

import base64
import importlib.util
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from installed_browsers import need_browser
from static_site import StaticSite, browsing

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        importlib.util.find_spec("rapidocr_onnxruntime") is None, reason="needs pip install rapidocr-onnxruntime"
    ),
]
ROOT = Path(__file__).resolve().parents[2]
LINES = ["Models run in browsers", "Order No. 4171", "12 brass hinges", "Sum 1,284.75 EUR", "May 17, 2026"]


@pytest.fixture(scope="module")
def prepare():
    """The script that assembles the site."""
    sys.path.insert(0, str(ROOT / "samples/web/ocr"))
    import prepare

    return prepare


@pytest.fixture(scope="module")
def site(tmp_path_factory, prepare):
    folder = tmp_path_factory.mktemp("ocr")
    prepare.prepare(folder)
    page = folder / "ocr"
    shutil.copy(Path(__file__).parent / "ocr_told.mjs", page)
    told = '<script type="module" src="ocr_told.mjs"></script>\n'
    (page / "told.html").write_text((page / "index.html").read_text() + told)
    with closing(StaticSite(folder)) as site:
        yield site


def array(tensor: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(tensor["data"]), tensor["type"]).reshape(tensor["dims"])


@pytest.mark.parametrize(
    ("browser", "provider"), [("chromium", "wasm"), ("chromium", "webgpu"), ("firefox", "wasm"), ("webkit", "wasm")]
)
def test_reading_the_sample(site, prepare, browser, provider):
    """Boxes and text; and each model returns native onnxruntime's results for the same pixels."""
    need_browser(browser)
    with browsing(browser, f"{site.origin}/ocr/told.html?provider={provider}"):
        told = site.told(300)
    assert "error" not in told, told
    assert [line["text"] for line in told["lines"]] == LINES
    assert told["executionProviders"][0] == provider
    assert told["status"].startswith("5 lines in ")
    assert told["canvas"] == [800, 256]
    for model, runs in told["ran"].items():
        native = onnxruntime.InferenceSession(prepare.models_folder() / prepare.MODELS[model])
        assert len(runs) == (1 if model == "detection" else len(LINES))
        for run in runs:
            (wanted,) = native.run(None, {native.get_inputs()[0].name: array(run["feed"])})
            np.testing.assert_allclose(array(run["output"]), wanted, rtol=1e-2, atol=1e-3)
    for line, top in zip(told["lines"], (35, 81, 128, 173, 220), strict=True):
        assert abs(line["y"] - top) < 4 and 160 < line["width"] < 300 and 18 < line["height"] < 32

"""The page's own MLContexts and MLTensors, by the npm package in a Chromium that has WebNN (`make webnn`)."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import small_models
from static_site import StaticSite, browsing
from text_form import parse

import py_ort

HERE = Path(__file__).resolve().parent
CHROMIUM = HERE.parents[1] / "build/webnn/chromium"
CASES = re.findall(r"^  (?:'(.+)'|\"(.+)\"|(\w+)): async", (HERE / "webnn_tensors.mjs").read_text(), re.MULTILINE)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium with WebNN is there (make webnn)"),
]
#: Types that MLTensors have; Det is the CPU's.
FORMS = """
g (int64[3] i, bool[3] b, float16[3] h, float[2,2] m)
=> (int64[3] i_neg, bool[3] not_b, float16[3] h_relu, float d, float d_twice) {
    i_neg = Neg(i)  not_b = Not(b)  h_relu = Relu(h)  d = Det(m)  d_twice = Add(d, d) }
"""


@pytest.fixture(scope="module")
def outcomes(package: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the outcome of each case."""
    folder = tmp_path_factory.mktemp("webnn") / "site"
    shutil.copytree(package / "dist", folder)
    for file in (HERE / "webnn_tensors.html", HERE / "webnn_tensors.mjs", HERE.parent / "page/javascript_checks.mjs"):
        shutil.copy(file, folder)
    for name, model in {"add": small_models.add(), "forms": parse(FORMS).SerializeToString()}.items():
        py_ort.export(model, folder / f"{name}.pyort", providers=["webnn", "wasm"])
    site = StaticSite(folder)
    try:
        with browsing(str(CHROMIUM), f"{site.origin}/webnn_tensors.html"):
            return site.told()["outcomes"]
    finally:
        site.close()


@pytest.mark.parametrize("case", ["".join(names) for names in CASES])
def test_webnn_tensors(outcomes: dict[str, str], case: str) -> None:
    assert outcomes[case] == "done"

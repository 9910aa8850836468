"""GPU tensors as onnxruntime-web documents them, on both engines, with the same results."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from either_engine import ENGINES, lay_out_engine
from static_site import StaticSite, browsing

pytestmark = pytest.mark.browser
HERE = Path(__file__).resolve().parent
CASES = re.findall(r"^  (?:'(.+)'|(\w+)): async", (HERE / "gpu_tensors.mjs").read_text(), re.MULTILINE)


@pytest.fixture(scope="module", params=ENGINES)
def outcomes(request, tmp_path_factory) -> dict[str, str]:
    """Return the outcome of each case on one engine."""
    folder = tmp_path_factory.mktemp("gpu_tensors")
    for name in ("gpu_tensors.html", "gpu_tensors.mjs", "javascript_checks.mjs"):
        shutil.copy(HERE / name, folder)
    query = lay_out_engine(folder, request.param)
    site = StaticSite(folder)
    try:
        with browsing("chromium", f"{site.origin}/gpu_tensors.html?{query}"):
            return site.told()["outcomes"]
    finally:
        site.close()


@pytest.mark.parametrize("case", [quoted or bare for quoted, bare in CASES])
def test_gpu_tensors(outcomes, case):
    assert outcomes[case] == "done"

"""GPU tensors as onnxruntime-web documents them, on both engines: what holds there holds here."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import small_models
from static_site import StaticSite, browsing

import py_ort
from py_ort.bench.peer import FLAVORS, find_dist
from py_ort.exceptions import EngineError
from py_ort.exporting.runtime_files import copy_runtime

pytestmark = pytest.mark.browser
HERE = Path(__file__).resolve().parent
CASES = re.findall(r"^  (?:'(.+)'|(\w+)): async", (HERE / "gpu_tensors.mjs").read_text(), re.MULTILINE)


@pytest.fixture(scope="module", params=["py_ort", "onnxruntime-web"])
def outcomes(request, tmp_path_factory) -> dict[str, str]:
    """Return the outcome of each case on one engine."""
    folder = tmp_path_factory.mktemp("gpu_tensors")
    for name in ("gpu_tensors.html", "gpu_tensors.mjs", "javascript_checks.mjs"):
        shutil.copy(HERE / name, folder)
    if request.param == "py_ort":
        copy_runtime(folder / "engine")
        py_ort.export(small_models.add(), folder / "add.pyort")
        query = "module=engine/py_ort.mjs&model=add.pyort"
    else:
        try:
            dist = find_dist()
        except EngineError as e:
            pytest.skip(str(e))
        flavor = FLAVORS["webgpu"]
        (folder / "engine").mkdir()
        for name in (flavor.module, f"{flavor.glue}.mjs", f"{flavor.glue}.wasm"):
            shutil.copy(dist / name, folder / "engine")
        (folder / "add.onnx").write_bytes(small_models.add())
        query = f"module=engine/{flavor.module}&model=add.onnx"
    site = StaticSite(folder)
    try:
        with browsing("chromium", f"{site.origin}/gpu_tensors.html?{query}"):
            return site.told()["outcomes"]
    finally:
        site.close()


@pytest.mark.parametrize("case", [quoted or bare for quoted, bare in CASES])
def test_gpu_tensors(outcomes, case):
    assert outcomes[case] == "done"

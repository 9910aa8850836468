"""A provider in a separate folder (mirror), which no other file names: built in, and used by all tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from py_ort.folders import ASSETS

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "web/build.mjs"
NAMED = {**os.environ, "PY_ORT_PROVIDERS": str(HERE / "mirror")}
CORE = ["core.mjs", "core.wasm", "rare_kernels.wasm", "kernels.wasm.json", "simd128.wasm", "relaxed_simd.wasm"]


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page with the provider, and the unchanged core."""
    folder = tmp_path_factory.mktemp("assets")
    subprocess.run(["node", BUILD, "--out", folder], check=True, env=NAMED, stdout=subprocess.PIPE)
    for name in CORE:
        shutil.copy(ASSETS / name, folder)
    return folder


def test_bundles_have_it(assets: Path) -> None:
    mirror, webgpu = (json.loads((assets / f"kernels.{name}.json").read_text()) for name in ("mirror", "webgpu"))
    assert [kernel["op_type"] for kernel in mirror] == ["Add", "Relu", "MatMul"]
    assert len(webgpu) > 100
    having = {file.name for file in assets.glob("*.*js") if "the mirror has no kernel for" in file.read_text()}
    assert {"worker.js", "session_worker.mjs"} <= having
    assert not [name for name in having if ".wasm" in name]


@pytest.mark.browser
def test_cases(assets: Path, tmp_path: Path) -> None:
    cases = ["-m", "pytest", "-q", "-p", "pytester", "-p", "no:cacheprovider", HERE / "cases_on_mirror.py"]
    done = subprocess.run(
        [sys.executable, *map(str, cases), "--basetemp", str(tmp_path / "cases")],
        env={**NAMED, "PY_ORT_ASSETS": str(assets)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""The tests of the core (`wasm_build/test`), in Node: plans, runs, errors, and the seam to a fake JS provider."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = sorted((ROOT / "wasm_build/test").glob("*.test.cjs"))


def test_there_are_tests() -> None:
    assert TESTS


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name.removesuffix(".test.cjs"))
def test_core(file: Path) -> None:
    core = {"PY_ORT_CORE": str(ROOT / "py_ort/assets/core.mjs")}
    done = subprocess.run(
        ["node", "--test", file], env={**os.environ, **core}, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]

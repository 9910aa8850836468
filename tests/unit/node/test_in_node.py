"""The unit tests of the core (`wasm_build/test`) and of the page (`web/test/unit`), which run in Node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CORE_TESTS = sorted((ROOT / "wasm_build/test").glob("*.test.cjs"))
WEB_TESTS = sorted((ROOT / "web/test/unit").glob("*.test.ts"))


def node(*arguments: object, **environment: str) -> None:
    done = subprocess.run(
        ["node", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


@pytest.fixture(scope="module")
def web_tests() -> Path:
    """The bundled tests of the page."""
    node("web/build.mjs", "--tests")
    return ROOT / "build/web-tests"


def test_there_are_tests() -> None:
    assert CORE_TESTS and WEB_TESTS


@pytest.mark.parametrize("file", CORE_TESTS, ids=lambda f: f.name.removesuffix(".test.cjs"))
def test_core(file: Path) -> None:
    node("--test", file, PY_ORT_CORE=str(ROOT / "py_ort/assets/core.mjs"))


@pytest.mark.parametrize("name", [f.name.removesuffix(".ts") for f in WEB_TESTS])
def test_web(web_tests: Path, name: str) -> None:
    node("--test", web_tests / f"{name}.mjs")

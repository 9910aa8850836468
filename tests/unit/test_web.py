"""The unit tests of web/, which run in Node: wire, memory plan, recordings, attributes, elements, shader texts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).resolve().parents[2] / "web"


@pytest.mark.skipif(not (WEB / "node_modules").exists(), reason="npm packages are not installed (npm ci in web/)")
def test_unit_tests_of_web() -> None:
    done = subprocess.run(
        ["npm", "test", "--silent"], cwd=WEB, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout and "# pass 0" not in done.stdout

"""The wheel, installed without the repository: the example of CI runs from it, by its workflow."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/ci"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel in it; its dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", folder / "dist", ROOT], check=True, timeout=240)
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", folder / "installed", wheel], check=True, timeout=120)
    return folder / "installed"


def pytest_command(file: Path) -> str:
    """The first command of a workflow that runs pytest, in Chromium."""
    found = re.search(r"python -m (pytest .*)", file.read_text(encoding="utf-8"))
    assert found, f"{file} runs no tests"
    command = re.sub(r"\$\{\{ *matrix\.browser *\}\}|\$BROWSER", "chromium", found[1])
    assert "$" not in command
    return command


def test_the_example_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    (command,) = {pytest_command(EXAMPLE / file) for file in (".github/workflows/test.yml", ".gitlab-ci.yml")}
    example = shutil.copytree(EXAMPLE, tmp_path / "example")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    env |= {"PYTHONPATH": str(installed), "PY_ORT_WEBGPU": "software"}

    def python(*args: str) -> str:
        done = subprocess.run(
            [sys.executable, *args], cwd=example, env=env, capture_output=True, text=True, timeout=280, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert Path(python("-c", "import py_ort; print(py_ort.__file__)").strip()).is_relative_to(installed)
    assert "4 passed" in python("-m", *shlex.split(command), "-p", "no:cacheprovider")
    report = (example / "report.xml").read_text(encoding="utf-8")
    assert 'tests="4"' in report and "test_reads_digits[chromium-webgpu]" in report


def test_what_the_wheel_says_of_itself(installed: Path) -> None:
    """pip's metadata: the license, and the notices of compiled-in code."""
    (info,) = installed.glob("py_ort-*.dist-info")
    metadata = (info / "METADATA").read_text(encoding="utf-8")
    assert "License-Expression: MIT" in metadata and "Requires-Python: >=3.11" in metadata
    files = re.findall(r"^License-File: (.+)$", metadata, re.MULTILINE)
    assert files == ["LICENSE", "py_ort/assets/THIRD_PARTY_NOTICES"]
    notices = (info / "licenses" / files[1]).read_text(encoding="utf-8")
    assert all(f"## {name} (" in notices for name in ("flatbuffers", "Emscripten and its system libraries", "dagre"))
    for file in files:
        assert (info / "licenses" / file).read_text(encoding="utf-8").strip()


def test_pages_and_core_are_in_the_wheel(installed: Path) -> None:
    (wheel,) = (installed.parent / "dist").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"py_ort/assets/core.wasm", "py_ort/assets/worker.js", "py_ort/schema/gen/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "examples/"))]

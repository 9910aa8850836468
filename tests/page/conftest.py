"""Sessions in a plain page (see web/test/plain_page.py), and commands whose results are JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_models

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "web/test"))


@pytest.fixture(scope="module")
def plain_page() -> Iterator[object]:
    """One browser for all tests of a module."""
    from plain_page import PlainPage

    opened = PlainPage()
    yield opened
    opened.close()


@pytest.fixture
def py_ort_json(py_ort_command: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, Any, str]]:
    """Run a command with `--json -`; return its status, its result (None if it has none) and its messages."""

    def run(*arguments: object) -> tuple[int, Any, str]:
        status, out, err = py_ort_command(*arguments, "--json", "-")
        return status, json.loads(out or "null"), err

    return run


@pytest.fixture
def add_file(tmp_path: Path) -> Path:
    """The file of `small_models.add`."""
    file = tmp_path / "add.onnx"
    file.write_bytes(small_models.add())
    return file

"""Sessions in a plain page (see web/test/plain_page.py), and the command `py-ort` in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "web/test"))


@pytest.fixture(scope="module")
def plain_page() -> Iterator[object]:
    """One browser for all tests of a module."""
    from plain_page import PlainPage

    opened = PlainPage()
    yield opened
    opened.close()


@pytest.fixture
def py_ort_command(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a command as `py-ort` does, but in the browsers of this process; return its status and what it printed."""
    from py_ort.cli import main

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["py-ort", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run

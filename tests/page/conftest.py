"""Sessions in a plain page (see web/test/plain_page.py)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
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

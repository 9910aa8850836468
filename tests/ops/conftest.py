"""Fixtures of the tests of kernels in a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "web/test/kernel_page")]


@pytest.fixture(scope="session")
def kernel_page() -> Iterator[Any]:
    """Run kernels in a shared page: `KernelPage.run`."""
    from run import KernelPage

    with KernelPage() as page:
        yield page

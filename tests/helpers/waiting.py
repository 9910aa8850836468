"""Waits for conditions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = 60) -> T:
    """Wait until the condition's value is true, and return the value.

    Args:
        condition: Looked at again and again.
        seconds: Limit after which the test fails.
    """
    limit = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < limit, f"not so after {seconds:g} s"
        time.sleep(0.02)
    return found

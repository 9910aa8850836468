"""Waits of tests for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def wait_until(condition: Callable[[], _T], seconds: float = 60, pause: float = 0.02) -> _T:
    """Call `condition` until its result is true, and return the result; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{condition.__qualname__} is still {found!r} after {seconds} s"
        time.sleep(pause)
    return found

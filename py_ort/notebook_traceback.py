"""Tracebacks as notebooks show them: frames of the user's code, without py_ort's own."""

from __future__ import annotations

import traceback
from pathlib import Path

#: Packages that run cells.
_RUNNERS = ("IPython", "ipykernel")
_PACKAGE = Path(__file__).parent.name


def notebook_traceback(error: BaseException) -> list[str]:
    """Return the lines of a traceback that ends where the user's code called py_ort; causes are not shown."""
    frames: list[traceback.FrameSummary] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == _PACKAGE:
            break
        if package not in _RUNNERS:
            frames += traceback.StackSummary.extract([(frame, line)])
    head = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return "".join([*head, *traceback.format_exception_only(error)]).splitlines()

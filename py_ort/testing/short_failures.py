"""Reports of failed tests: the test's own line and the error's message, without py_ort's frames and causes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: The name by which a module hides its frames from pytest.
_HIDE = "__tracebackhide__"
_PACKAGE = Path(__file__).parents[1]


@contextmanager
def shortened(excinfo: pytest.ExceptionInfo[BaseException] | None) -> Iterator[None]:
    """Report an error without py_ort's frames and without its causes, if py_ort raised it for a test."""
    from py_ort.exceptions import PyOrtError

    error = excinfo and excinfo.value
    if excinfo is None or not isinstance(error, (PyOrtError, pytest.fail.Exception)):
        yield
        return
    frames = excinfo.traceback
    ours = (number for number, frame in enumerate(frames) if _PACKAGE in Path(frame.path).parents)
    if not (first := next(ours, 0)):
        yield
        return
    shown = [frame.frame.f_globals for frame in frames[:first]]
    hidden = [names for frame in frames[first:] if all((names := frame.frame.f_globals) is not one for one in shown)]
    chain = error.__cause__, error.__suppress_context__
    error.__cause__, error.__suppress_context__ = None, True
    for names in hidden:
        names[_HIDE] = True
    try:
        yield
    finally:
        error.__cause__, error.__suppress_context__ = chain
        for names in hidden:
            names.pop(_HIDE, None)

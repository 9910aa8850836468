"""Exceptions of signal handlers (time limits of task queues, `signal.alarm`) in the middle of py_ort's own code.

Python runs a handler between any two instructions of the main thread. Its exception belongs to the caller, whatever
its class: code of py_ort that handles exceptions of its own asks here before it handles one of a class that others may
raise.
"""

from __future__ import annotations

import contextlib
import inspect
from types import FrameType, TracebackType


def from_handler(error: BaseException) -> bool:
    """Return True if a signal handler raised the exception, in the code of the frames that it has passed so far.

    A handler is told by how Python calls it: its arguments include the frame that it interrupts, which called it.
    """
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        if _handles(step.tb_next, step.tb_frame):
            return True
        step = step.tb_next
    return False


def _handles(step: TracebackType, interrupted: FrameType) -> bool:
    arguments = inspect.getargvalues(step.tb_frame)
    values = [arguments.locals.get(name) for name in arguments.args if isinstance(name, str)]
    values += arguments.locals.get(arguments.varargs or "", ())
    return any(value is interrupted for value in values)


class suppress(contextlib.suppress):
    """`contextlib.suppress`, for which exceptions of signal handlers do not count."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if error is None or not super().__exit__(kind, error, traceback):
            return False
        return not from_handler(error)

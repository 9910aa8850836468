"""onnxruntime's `set_default_logger_callback`: a function that receives the messages of `getLogger("py_ort")`."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from py_ort.boundary import public_function
from py_ort.exceptions import InvalidArgument
from py_ort.log import LEVELS
from py_ort.runtime.available import level_of

_CATEGORY = "onnxruntime"


class _Given(logging.Handler):
    """Passes messages to the function; messages that it cannot handle are printed, as without it."""

    def __init__(self, callback: Callable[[int, str, str, str, str], object]) -> None:
        super().__init__()
        self._callback = callback
        self._inside = threading.local()

    def handle(self, record: logging.LogRecord) -> bool:
        """Run without the usual lock of handlers: the function may log, or wait for a thread that logs."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Call the function, unless the message is one of its own."""
        if getattr(self._inside, "busy", False):
            _platform(record)
            return
        logid = getattr(record, "logid", "")
        place = f"{record.filename}:{record.lineno} {record.funcName}" if record.pathname else record.name
        text = record.getMessage().removeprefix(f"{logid}: " if logid else "")
        severity = max((n for n, level in enumerate(LEVELS) if level <= record.levelno), default=0)
        self._inside.busy = True
        try:
            self._callback(severity, _CATEGORY, logid or "Default", place, text)
        except Exception as e:
            sys.unraisablehook(_Unraisable(type(e), e, e.__traceback__, self._callback))
            _platform(record)
        finally:
            self._inside.busy = False


@dataclass
class _Unraisable:
    """The argument of `sys.unraisablehook`: an exception that no one can catch."""

    exc_type: type[BaseException]
    exc_value: BaseException | None
    exc_traceback: TracebackType | None
    object: Any
    err_msg: str | None = None


_given: _Given | None = None


def _platform(record: logging.LogRecord) -> None:
    if logging.lastResort is not None:
        logging.lastResort.handle(record)


@public_function
def set_default_logger_callback(
    callback: Callable[[int, str, str, str, str], object] | None, severity: int = 2
) -> None:
    """Pass messages to a function; None ends that.

    Python then no longer prints messages; handlers of `logging` that the program has added still receive them. Messages
    that the function itself causes, or in which it fails, are printed; its exceptions go to `sys.unraisablehook`.

    Args:
        callback: Called with (severity, category, logid, place in the code, text), in the thread of the message.
        severity: The least severity of messages, 0 to 4, as for `set_default_logger_severity`. Not set if `callback`
            is None.

    Raises:
        InvalidArgument: `callback` cannot be called, or there is no such severity.
    """
    global _given
    if callback is not None and not callable(callback):
        raise InvalidArgument(f"callback is a function, or None; not {callback!r}")
    logger, level = logging.getLogger("py_ort"), level_of(severity)
    if _given is not None:
        logger.removeHandler(_given)
    _given = None if callback is None else _Given(callback)
    if _given is not None:
        logger.setLevel(level)
        logger.addHandler(_given)

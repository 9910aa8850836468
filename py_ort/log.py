"""The messages of one session or run, with its name as a prefix and its own least severity.

`Log` lines of the page go to `logging.getLogger("py_ort.page.CATEGORY")`. Categories are session, webgpu, console, and
core for output of the core's runtime. Sessions share a page: a line is shown if the logger's level allows it, or the
`log_severity_level` of one of the page's sessions (`log_for`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from py_ort.exceptions import InvalidArgument

#: onnxruntime's severities (0 verbose … 4 fatal) as levels of Python's logging.
LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class SessionLog:
    """Logs to `logging.getLogger("py_ort")`.

    Args:
        severity: The least severity; -1: the logger's own level. Handlers of the logger also receive messages of lower
            severity than the logger's, as in onnxruntime.
        name: Prefix of each message (`logid`).
    """

    def __init__(self, severity: int = -1, name: str = "") -> None:
        if not -1 <= severity < len(LEVELS):
            raise InvalidArgument(f"log_severity_level must be -1, or 0 (verbose) to 4 (fatal), not {severity}")
        self._logger = logging.getLogger("py_ort")
        self._level = None if severity < 0 else LEVELS[severity]
        self._name, self._prefix = name, f"{name}: " if name else ""

    def log(self, level: int, message: str, *args: object) -> None:
        """Log a message of one of Python's levels."""
        if not self.enabled(level):
            return
        text = self._prefix + (message % args if args else message)
        told = {"logid": self._name}
        self._logger.handle(self._logger.makeRecord(self._logger.name, level, "", 0, text, (), None, extra=told))

    def enabled(self, level: int) -> bool:
        """Return True if messages of this level are logged."""
        return self._logger.isEnabledFor(level) if self._level is None else level >= self._level

    def warning(self, message: str, *args: object) -> None:
        """Log a warning."""
        self.log(logging.WARNING, message, *args)

    def info(self, message: str, *args: object) -> None:
        """Log an event."""
        self.log(logging.INFO, message, *args)

    def debug(self, message: str, *args: object) -> None:
        """Log a detail of an event."""
        self.log(logging.DEBUG, message, *args)

    def of_run(self, severity: int, name: str) -> SessionLog:
        """Return the log of one run; -1 and "" mean the session's severity and name."""
        made = SessionLog(severity, name)
        if severity < 0:
            made._level = self._level
        if not name:
            made._name, made._prefix = self._name, self._prefix
        return made


def log_for(logs: Sequence[SessionLog], logger: logging.Logger, level: int, text: str) -> None:
    """Log a line of a page or a core that sessions share, if one of the sessions logs this level.

    Args:
        logs: Logs of the sessions. Without sessions, the logger's own level decides.
        logger: The logger of the line's category.
        level: A level of Python's logging.
        text: The line.
    """
    if logger.isEnabledFor(level) and (not logs or any(log._level is None for log in logs)):
        logger.log(level, "%s", text)
        return
    for log in logs:
        if log._level is not None and level >= log._level:
            logger.handle(logger.makeRecord(logger.name, level, "", 0, log._prefix + text, (), None))
            return

"""Lines about steps that take long, for callers who passed no `progress`."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from py_ort.log import SessionLog
from py_ort.uninterrupted import start

#: Seconds that a step may take without a line about it, and seconds between two looks.
_PATIENCE, _TICK = 3.0, 0.5


class SlowSteps:
    """A `progress` that writes a line about each slow step: to a terminal on stderr, or else to the session's log.

    On a terminal the line counts: it is rewritten in place.

    As a context manager; leaving it ends the last step.

    Args:
        log: The session's log, which gets a message of level INFO where stderr is no terminal.
        stage: The first step; "": a call names it.
    """

    def __init__(self, log: SessionLog, stage: str = "") -> None:
        self._log, self._over = log, threading.Event()
        self._step = stage, time.monotonic(), ""
        #: The line that the terminal shows, still without its end.
        self._line, self._lock = "", threading.Lock()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Begin a step, or tell how much of the current one is done."""
        before, began, _ = self._step
        amount = f" {done} of {total}" if total else ""
        self._step = stage, began if stage == before else time.monotonic(), amount

    def __enter__(self) -> SlowSteps:
        start(threading.Thread(target=self._watch, name="py_ort-steps", daemon=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._end_line()

    def _watch(self) -> None:
        told = ""
        while not self._over.wait(_TICK):
            stage, began, amount = self._step
            if stage != told:
                self._end_line()
            if not stage or (stage != told and time.monotonic() - began <= _PATIENCE):
                continue
            if sys.stderr is not None and sys.stderr.isatty():
                self._show(f"py_ort: {stage}{amount} …")
            elif stage != told:
                self._log.info("%s%s takes more than %g s", stage, amount, _PATIENCE)
            told = stage

    def _show(self, line: str) -> None:
        """Write a line over the one before."""
        with self._lock:
            if line != self._line and not self._over.is_set():
                sys.stderr.write(("\r" if self._line else "") + line.ljust(len(self._line)))
                sys.stderr.flush()
                self._line = line

    def _end_line(self) -> None:
        with self._lock:
            if self._line and sys.stderr is not None:
                sys.stderr.write("\n")
            self._line = ""

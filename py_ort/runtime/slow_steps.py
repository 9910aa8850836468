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

    As a context manager; leaving it ends the last step.

    Args:
        log: The session's log, which gets a message of level INFO where stderr is no terminal.
        stage: The first step; "": a call names it.
    """

    def __init__(self, log: SessionLog, stage: str = "") -> None:
        self._log, self._over = log, threading.Event()
        self._step, self._amount = (stage, time.monotonic()), ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Begin a step, or tell how much of the current one is done."""
        self._amount = f" {done} of {total}" if total else ""
        if stage != self._step[0]:
            self._step = (stage, time.monotonic())

    def __enter__(self) -> SlowSteps:
        start(threading.Thread(target=self._watch, name="py_ort-steps", daemon=True))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()

    def _watch(self) -> None:
        told = ""
        while not self._over.wait(_TICK):
            stage, began = self._step
            if stage and stage != told and time.monotonic() - began > _PATIENCE:
                told = stage
                self._tell(stage)

    def _tell(self, stage: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(f"py_ort: {stage}{self._amount} …\n")
        else:
            self._log.info("%s%s takes more than %g s", stage, self._amount, _PATIENCE)

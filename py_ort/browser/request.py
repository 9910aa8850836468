"""Requests to a page, until they are answered."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from py_ort.wire import Answer, Logits, NewTokens, Prepared, ProgressReport
from py_ort.wire.framing import Buffer

Progress = Callable[[ProgressReport], None]
Generated = Callable[[NewTokens | Logits], object]

#: Seconds to wait for the answer to a request without a timeout: these, else ANSWER_PATIENCE. Work of unknown length
#: may last as long as the page lives, which `Pool` checks by asking the browser's page.
PATIENCE: dict[str, float] = {
    **dict.fromkeys(("Run", "CreateSession", "Generate"), math.inf),
    **dict.fromkeys(("JsepRun", "JsepCopy", "JsepCopyAsync"), 600.0),
}
ANSWER_PATIENCE = 60.0
#: Requests that may run for a long time in a worker.
COMPUTING = ("Run", "CreateSession", "JsepRun", "Generate")
#: Text of errors in a forked child.
OTHER_PROCESS = (
    "sessions and values on the GPU belong to the process that made them, of which this one is a fork: make them anew "
    "here, or fork before (multiprocessing: the start method 'spawn')"
)


@dataclass(eq=False)
class Request:
    """A request to the page.

    Attributes:
        number: The request's number; 0 before it has one.
        sent: Number of bytes that the calling thread sent at once; empty if the loop's thread sends them.
    """

    body: Any
    payload: Sequence[Buffer] = ()
    payload_size: int = 0
    url: str = ""
    timeout: float | None = None
    progress: Progress | None = None
    generated: Generated | None = None
    unwanted: Callable[[Answer], object] | None = None
    future: Future[Answer] = field(default_factory=Future)
    number: int = 0
    sent: list[int] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None
    cancelled: bool = False

    @property
    def patience(self) -> float:
        """Seconds to wait for the answer."""
        return PATIENCE.get(self.name, ANSWER_PATIENCE) if self.timeout is None else self.timeout

    @property
    def name(self) -> str:
        return self.body.name if isinstance(self.body, Prepared) else type(self.body).__name__.removesuffix("T")

    @property
    def session(self) -> int | None:
        """The page's number of the session that the request computes with, if any."""
        return self.body.session if self.name in COMPUTING and hasattr(self.body, "session") else None

    def finish(self, answer: Answer) -> None:
        try:
            self.future.set_result(answer)
        except InvalidStateError:  # cancelled, in another thread, or it took too long
            self.undo(answer)

    def undo(self, answer: Answer) -> None:
        if self.unwanted:
            self.unwanted(answer)

    def fail(self, error: BaseException) -> None:
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)

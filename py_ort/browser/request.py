"""What a page is asked, until it has answered."""

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

#: Seconds that a page has to answer a request that names none: ANSWER_PATIENCE, and these. Work of which nobody knows
#: how long it takes has as long as the page lives: the browser's page is asked for that (`Pool`).
PATIENCE: dict[str, float] = {
    **dict.fromkeys(("Run", "CreateSession", "Generate"), math.inf),
    **dict.fromkeys(("JsepRun", "JsepCopy", "JsepCopyAsync"), 600.0),
}
ANSWER_PATIENCE = 60.0
#: Requests that may run long in a worker.
COMPUTING = ("Run", "CreateSession", "JsepRun", "Generate")
#: What an error says in a forked child.
OTHER_PROCESS = (
    "sessions and values on the GPU belong to the process that made them, of which this one is a fork: make them anew "
    "here, or fork before (multiprocessing: the start method 'spawn')"
)


@dataclass(eq=False)
class Request:
    """Something asked of the page.

    Attributes:
        number: What the page knows it by; 0 before it has one.
        sent: The number of bytes that the thread that asks has sent at once, if it has.
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
        """Seconds that the page has to answer."""
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

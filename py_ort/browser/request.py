"""What a page is asked, until it has answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from py_ort.wire import Answer, Prepared, ProgressReport
from py_ort.wire.framing import Buffer

Progress = Callable[[ProgressReport], None]


@dataclass(eq=False)
class Request:
    """Something asked of the page."""

    body: Any
    payload: Sequence[Buffer] = ()
    payload_size: int = 0
    url: str = ""
    timeout: float | None = None
    progress: Progress | None = None
    tokens: Callable[[list[int]], object] | None = None
    unwanted: Callable[[Answer], object] | None = None
    future: Future[Answer] = field(default_factory=Future)
    timer: asyncio.TimerHandle | None = None
    cancelled: bool = False

    @property
    def name(self) -> str:
        return self.body.name if isinstance(self.body, Prepared) else type(self.body).__name__.removesuffix("T")

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

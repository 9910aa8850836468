"""A running generation, as an iterator of its tokens."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from py_ort.boundary import public
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.wire import Answer
from py_ort.wire.json_fields import GenerateInfo

T = TypeVar("T")
#: Starts a generation; the argument receives tokens, the result is the future of the page's answer.
Start = Callable[[Callable[[list[int]], object]], "Future[Answer]"]


@dataclass(frozen=True)
class Form:
    """The form of a generation's result.

    Attributes:
        rows: Number of sequences of tokens.
        batch: True if the result is a list of lists.
        searches: True for a beam search, whose tokens are known only at the end.
    """

    rows: int
    batch: bool
    searches: bool


class GenerationBase(Generic[T]):
    """The state of a generation; `Generation` and `AsyncGeneration` wait for its tokens.

    Attributes:
        cancelled: True if `cancel` ended the generation.
    """

    def __init__(self, session: object, start: Start, form: Form, put: Callable[[list[int] | None], object]) -> None:
        # Keeps the session open: an unreferenced session is closed.
        self._session: object = session
        self._form = form
        self._rows: list[list[int]] = [[] for _ in range(form.rows)]
        self._info: GenerateInfo | None = None
        self._ended = False
        self.cancelled = False
        # Not a method: the future would hold this object, whose deletion ends the generation.
        self._future = start(put)
        self._future.add_done_callback(lambda _: put(None))

    @property
    def tokens(self) -> Any:
        """The new tokens so far: a list, or for a batch a list for each row."""
        return [list(row) for row in self._rows] if self._form.batch else list(self._rows[0])

    @property
    def info(self) -> GenerateInfo:
        """The page's account of a finished generation: times, steps, reused tokens, counters.

        Raises:
            PyOrtError: The generation is not over, or was cancelled.
        """
        if self._info is None:
            raise PyOrtError("this generation was cancelled" if self.cancelled else "this generation is not over")
        return self._info

    @property
    def finish_reason(self) -> Any:
        """The reason for the end: "eos", "stop", "length" or "cancelled"; None before the end; for a batch a list."""
        if self._info is None:
            reasons: list[str | None] = ["cancelled" if self.cancelled else None] * len(self._rows)
        else:
            reasons = list(self._info["finished"])
        return reasons if self._form.batch else reasons[0]

    def cancel(self) -> None:
        """End the generation at once, if it is not over. The session and its caches stay usable."""
        if self._future.cancel():
            self.cancelled = True
        self._session = None

    def _took(self, tokens: list[int] | None) -> list[T]:
        """Return the item of a step's tokens; [] at the end, where the account is kept or the error raised."""
        if tokens is None or self.cancelled:
            self._ended, self._session = True, None
            self._account()
            return []
        for row, token in zip(self._rows, tokens, strict=True):
            if token >= 0:
                row.append(token)
        given = [token if token >= 0 else None for token in tokens]
        return [cast(T, given if self._form.batch else given[0])]

    def _account(self) -> None:
        """Keep the account of a finished generation, or raise its error, each time."""
        try:
            self._info = cast(GenerateInfo, self._future.result().told())
        except CancelledError:
            self.cancelled = True

    def _check_streams(self) -> None:
        if self._form.searches:
            raise InvalidArgument(
                "generate: a search by beams has no token before its end: take `result()` instead of iterating, "
                "or give num_beams=1"
            )

    def __del__(self) -> None:
        if hasattr(self, "_future"):
            self._future.cancel()


@public
class Generation(GenerationBase[T]):
    """The tokens of a generation as they arrive: an iterator, made by `InferenceSession.generate`.

    For one prompt each item is a token; for a batch, a list with a token for each row, None for finished rows. An
    unreferenced generation (its loop was left) is ended. A beam search has only a `result`.
    """

    def __init__(self, session: object, start: Start, form: Form) -> None:
        self._queue: queue.SimpleQueue[list[int] | None] = queue.SimpleQueue()
        super().__init__(session, start, form, self._queue.put)

    def __iter__(self) -> Generation[T]:
        return self

    def __next__(self) -> T:
        """Wait for the next token. Ctrl-C ends the generation.

        Raises:
            InvalidArgument: The generation is a beam search.
            PyOrtError: As `InferenceSession.generate` says.
        """
        self._check_streams()
        if took := self._next():
            return took[0]
        raise StopIteration

    def _next(self) -> list[T]:
        """Wait for the next token; [] after the last."""
        if not self._ended:
            try:
                tokens = self._queue.get()
            except BaseException:
                self.cancel()
                raise
            if tokens is None:
                self._queue.put(None)  # others may wait for the end, too
            return self._took(tokens)
        return []

    def result(self) -> Any:
        """Wait for the end and return all new tokens, as `tokens` does.

        Raises:
            PyOrtError: As `InferenceSession.generate` says.
        """
        while self._next():
            pass
        self._account()
        return self.tokens

    def __enter__(self) -> Generation[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


@public
class AsyncGeneration(GenerationBase[T]):
    """`Generation` for asyncio: an async iterator, made by `AsyncInferenceSession.generate` in the awaiting loop."""

    def __init__(self, session: object, start: Start, form: Form) -> None:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[list[int] | None] = asyncio.Queue()
        self._queue = waiting

        def put(tokens: list[int] | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(waiting.put_nowait, tokens)

        super().__init__(session, start, form, put)

    def __aiter__(self) -> AsyncGeneration[T]:
        return self

    async def __anext__(self) -> T:
        """Wait for the next token. Cancelling the task ends the generation.

        Raises:
            InvalidArgument: The generation is a beam search.
            PyOrtError: As `AsyncInferenceSession.generate` says.
        """
        self._check_streams()
        if took := await self._next():
            return took[0]
        raise StopAsyncIteration

    async def _next(self) -> list[T]:
        """Wait for the next token; [] after the last."""
        if not self._ended:
            try:
                tokens = await self._queue.get()
            except BaseException:
                self.cancel()
                raise
            if tokens is None:
                self._queue.put_nowait(None)  # others may wait for the end, too
            return self._took(tokens)
        return []

    async def result(self) -> Any:
        """Wait for the end and return all new tokens, as `tokens` does.

        Raises:
            PyOrtError: As `AsyncInferenceSession.generate` says.
        """
        while await self._next():
            pass
        self._account()
        return self.tokens

    async def __aenter__(self) -> AsyncGeneration[T]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

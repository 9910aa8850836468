"""A function of the caller's that changes logits, for a generation in a page."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any

import numpy as np

from py_ort.exceptions import InvalidArgument
from py_ort.runtime.loaded import Loaded
from py_ort.schema.gen.ChosenLogits import ChosenLogitsT
from py_ort.wire import Answer, Logits, NewTokens
from py_ort.wire.tensors import Layout, pack

#: Called with the logits of a row, its new tokens so far, and its number; returns other logits, or None.
LogitsProcessor = Callable[[np.ndarray, list[int], int], Any]
#: Sessions whose generations wait for the current code.
_waiting: contextvars.ContextVar[tuple[Loaded, ...]] = contextvars.ContextVar("waiting", default=())
_log = logging.getLogger("py_ort.generate")


class Processing:
    """The receiver of a generation's events: it passes tokens on, and has logits changed.

    Args:
        session: The page's session.
        tokens: Called with the tokens of each step, in the page's loop.
        processor: Called in a thread of its own, as the loop waits for no one, and in the context of the caller.

    Attributes:
        future: Future of the page's answer, or of an exception of the processor that is no `Exception`: SystemExit, …

    Raises:
        InvalidArgument: The caller is a processor of a generation of the same session, which waits for it.
    """

    def __init__(
        self, session: Loaded, tokens: Callable[[list[int]], object], processor: LogitsProcessor | None
    ) -> None:
        if session in _waiting.get():
            raise InvalidArgument(
                "generate: logits_processor cannot generate with its own session, which waits for it: use another "
                "session of the model"
            )
        self.future: Future[Answer] = Future()
        self._page, self._tokens, self._processor = session.page, tokens, processor
        self._context = contextvars.copy_context()
        self._context.run(_waiting.set, (*_waiting.get(), session))

    def __call__(self, event: NewTokens | Logits) -> None:
        """Hear of new tokens or logits, in the page's loop."""
        if isinstance(event, NewTokens):
            self._tokens(event.tokens)
        elif self._processor:
            context = self._context.copy()  # a thread cannot enter one that another is in
            threading.Thread(target=context.run, args=(self._answer, self._processor, event), daemon=True).start()

    def _answer(self, processor: LogitsProcessor, asked: Logits) -> None:
        layout, body = Layout(), ChosenLogitsT()
        body.request = asked.request
        try:
            body.logits = pack("", _changed(processor, asked), layout)
        except BaseException as e:  # the page ends the generation with it
            if not isinstance(e, Exception):
                with contextlib.suppress(InvalidStateError):  # it was cancelled
                    self.future.set_exception(e)
            body.error = f"generate: logits_processor raised {type(e).__name__}: {e}"
            _log.debug("logits_processor", exc_info=True)
        self._page.start(body, layout.buffers, layout.size)


def _changed(processor: LogitsProcessor, asked: Logits) -> np.ndarray:
    own = np.array(asked.logits)
    given = processor(own, asked.tokens, asked.row)
    changed = own if given is None else np.ascontiguousarray(given, np.float32)
    if changed.shape != own.shape:
        raise ValueError(f"it returned logits of shape {list(changed.shape)}, not {list(own.shape)}")
    return changed

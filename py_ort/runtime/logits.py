"""A function of the caller's that changes logits, for a generation in a page."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from py_ort.browser.page import Page
from py_ort.browser.request import Generated
from py_ort.schema.gen.ChosenLogits import ChosenLogitsT
from py_ort.wire import Logits, NewTokens
from py_ort.wire.tensors import Layout, pack

#: Called with the logits of a row, its new tokens so far, and its number; returns other logits, or None.
LogitsProcessor = Callable[[np.ndarray, list[int], int], Any]
_log = logging.getLogger("py_ort.generate")


def tokens_and_logits(
    tokens: Callable[[list[int]], object], processor: LogitsProcessor | None, page: Page
) -> Generated:
    """Return what hears of a generation in a page: it passes tokens on, and has logits changed.

    Args:
        tokens: Called with the tokens of each step, in the page's loop.
        processor: Called in a thread of its own: the loop waits for no one.
        page: The page.
    """

    def told(event: NewTokens | Logits) -> None:
        if isinstance(event, NewTokens):
            tokens(event.tokens)
        elif processor:
            threading.Thread(target=_answer, args=(processor, page, event), daemon=True).start()

    return told


def _answer(processor: LogitsProcessor, page: Page, asked: Logits) -> None:
    layout, body = Layout(), ChosenLogitsT()
    body.request = asked.request
    try:
        body.logits = pack("", _changed(processor, asked), layout)
    except Exception as e:  # the page ends the generation with it
        body.error = f"generate: logits_processor raised {type(e).__name__}: {e}"
        _log.debug("logits_processor", exc_info=True)
    page.start(body, layout.buffers, layout.size)


def _changed(processor: LogitsProcessor, asked: Logits) -> np.ndarray:
    own = np.array(asked.logits)
    given = processor(own, asked.tokens, asked.row)
    changed = own if given is None else np.ascontiguousarray(given, np.float32)
    if changed.shape != own.shape:
        raise ValueError(f"it returned logits of shape {list(changed.shape)}, not {list(own.shape)}")
    return changed

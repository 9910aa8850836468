"""The start of a generation: a prompt and settings, as a request to the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from py_ort.log import SessionLog
from py_ort.runtime.generation.generation import Form, Start
from py_ort.runtime.generation.model_folder import defaults_beside
from py_ort.runtime.generation.settings import page_options, processor_of, result_rows, rows_of, seconds
from py_ort.runtime.opened import Opened
from py_ort.wire import Answer


def start_of(
    ready: Callable[[float | None], Opened],
    model: str,
    log: SessionLog,
    prompt: Any,
    settings: Mapping[str, Any],
    timeout: float | None,
) -> tuple[Start, Form]:
    """Return a function that starts a generation, and the form of its tokens.

    Args:
        ready: Returns the session, once it is in the page, within so many seconds.
        model: The path of the model's file; "" of bytes.
        log: The session's.
        prompt: As for `InferenceSession.generate`, like all further arguments.
    """
    timeout = seconds(timeout)
    rows, batch = rows_of(prompt)
    defaults = defaults_beside(model)
    processor = processor_of(settings)
    options = page_options(settings, defaults, max(map(len, rows)))
    wanted = result_rows(len(rows), options)
    if defaults.unmet:
        log.warning("generate does not do what the model's files say: %s", ", ".join(defaults.unmet))
    opened = ready(timeout)

    def start(tokens: Callable[[list[int]], object]) -> Future[Answer]:
        return opened.runtime.start_generation(opened.session, rows, options, tokens, processor, timeout=timeout)

    several = options.get("numReturnSequences", 1) > 1
    return start, Form(wanted, batch or several, options.get("numBeams", 1) > 1)

"""What all tests share: one browser for the whole pytest session, and no GPU error that passes unseen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from shared_browser import BROWSER

from py_ort import InferenceSession


class _PageErrors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def page_errors(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Fail a test in which a page logged an error: an uncaptured WebGPU error, an exception, a message of the console.

    A test that provokes one takes the fixture and clears the list.
    """
    handler, logger = _PageErrors(), logging.getLogger("py_ort.page")
    logger.addHandler(handler)
    yield handler.lines
    logger.removeHandler(handler)
    if handler.lines:
        pytest.fail("the page logged errors:\n" + "\n".join(handler.lines))


@pytest.fixture
def new_session() -> Iterator[Callable[..., InferenceSession]]:
    """Make sessions in the shared browser; they are closed after the test."""
    made: list[InferenceSession] = []

    def new_session(*args: Any, **options: Any) -> InferenceSession:
        options.setdefault("browser", BROWSER)
        made.append(InferenceSession(*args, **options))
        return made[-1]

    yield new_session
    for session in made:
        session.close()

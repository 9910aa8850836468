"""Fixtures of all tests: one browser for the whole pytest session, and no GPU error that passes unseen."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from shared_browser import BROWSER

from py_ort import InferenceSession
from py_ort.testing.plugin import sessions_in

pytest_plugins = ["pytester", "retry_failed"]
# Every test compiles for itself and leaves nothing in the user's folders; those of the plan cache switch it on.
os.environ["PY_ORT_CACHE"] = "0"
# A question for the providers at hand starts no browser of its own.
os.environ["PY_ORT_PROBE"] = "0"
# Processes that pytest starts for tests, and those that tests start, multiply matrices of numpy on one thread: a second
# waits awake after each product, for fifty times as long as that took.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Shells have what runs in the background ignore interrupts, and processes that tests start and interrupt would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Every model that a test compiles proves the passes.
os.environ["PY_ORT_CHECK_PASSES"] = "1"


def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay until the end: garbage is looked for in what comes after them only."""
    gc.freeze()


@pytest.fixture(autouse=True)
def page_errors(ort_page_errors: list[str]) -> list[str]:
    """In every test; see `ort_page_errors`."""
    return ort_page_errors


def loggers() -> list[logging.Logger]:
    """Ours."""
    known = logging.root.manager.loggerDict
    return [logging.getLogger(name) for name in list(known) if name.partition(".")[0] == "py_ort"]


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """No test changes for those behind it which messages are told, and to whom."""
    before = [(logger, logger.level, logger.propagate, logger.disabled) for logger in loggers()]
    yield
    for logger, level, propagate, disabled in before:
        if logger.level != level:
            logger.setLevel(level)
        logger.propagate, logger.disabled = propagate, disabled


@pytest.fixture
def new_session() -> Iterator[Callable[..., InferenceSession]]:
    """Make sessions in the shared browser; they are closed after the test."""
    with sessions_in(BROWSER) as make:
        yield make


@pytest.fixture
def py_ort_command(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a command as `py-ort` does, but in the browsers of this process; return its status and what it printed."""
    from py_ort.cli import main

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["py-ort", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run

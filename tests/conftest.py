"""Fixtures of all tests: one browser for the whole pytest session, and no GPU error that passes unseen."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from shared_browser import BROWSER

from py_ort import InferenceSession
from py_ort.testing.plugin import sessions_in

pytest_plugins = ["pytester", "retry_failed", "page_fixtures"]
# Every test compiles for itself and leaves no files in the user's folders; tests of the plan cache enable it.
os.environ["PY_ORT_CACHE"] = "0"
# A question for the providers at hand starts no browser of its own.
os.environ["PY_ORT_PROBE"] = "0"
# Processes that pytest starts for tests, and those that tests start, multiply numpy's matrices on one thread: a second
# one stays awake after each product, for fifty times the product's time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Shells make background jobs ignore interrupts, which would also apply to processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Checks the passes for every model that a test compiles.
os.environ["PY_ORT_CHECK_PASSES"] = "1"


def pytest_collection_finish() -> None:
    """Modules and thousands of tests stay until the end: garbage collection looks only at later objects."""
    gc.freeze()


@pytest.fixture(autouse=True)
def page_errors(ort_page_errors: list[str]) -> list[str]:
    """Applies to every test; see `ort_page_errors`."""
    return ort_page_errors


def loggers() -> list[logging.Logger]:
    """py_ort's loggers."""
    known = logging.root.manager.loggerDict
    return [logging.getLogger(name) for name in list(known) if name.partition(".")[0] == "py_ort"]


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """Restore the levels and handlers of loggers after each test."""
    before = [(logger, logger.level, logger.propagate, logger.disabled) for logger in loggers()]
    yield
    for logger, level, propagate, disabled in before:
        if logger.level != level:
            logger.setLevel(level)
        logger.propagate, logger.disabled = propagate, disabled


@pytest.fixture
def new_session() -> Iterator[Callable[..., InferenceSession]]:
    """Make sessions of files, bytes or `ModelProto`s in the shared browser, and close them after the test."""
    with sessions_in(BROWSER) as make:

        def session(model: Any, *args: Any, **options: Any) -> InferenceSession:
            serialize = getattr(model, "SerializeToString", None)
            return make(serialize() if serialize else model, *args, **options)

        yield session


@pytest.fixture
def py_ort_command(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Run a command like `py-ort`, but in the browsers of this process; return its status and its output."""
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

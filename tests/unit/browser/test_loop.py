"""Exceptions of tasks that no caller waits for any more."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from py_ort.browser.launchers import with_playwright
from py_ort.browser.loop import loop_thread

playwright = pytest.importorskip("playwright.async_api")


async def _dropped(error: Exception) -> None:
    asyncio.get_running_loop().create_future().set_exception(error)
    gc.collect()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (playwright.Error("Target page, context or browser has been closed"), False),
        (Exception("Connection closed while reading from the driver"), False),
        (KeyError("a bug"), True),
    ],
    ids=["the browser's", "the driver's", "another"],
)
def test_what_a_driver_says_when_it_ends_is_no_traceback(error, told, caplog):
    """A terminal's Ctrl-C also ends Playwright's driver process, whose tasks then raise errors without a reader."""
    assert with_playwright.ANSWER_PATIENCE, "whoever imports it has heard of its errors"
    with caplog.at_level(logging.ERROR):
        loop_thread().call(_dropped(error))
    assert any(record.name == "asyncio" for record in caplog.records) == told

"""`--ort-browser capture`: the URL is shown to people, and workers of pytest-xdist share the browsers that open it."""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest


def prepare_capture(config: pytest.Config) -> None:
    """Show the URL although pytest captures output; with pytest-xdist, lend browsers to the workers."""
    from py_ort.browser import captured

    show = captured.announce

    def announce(text: str, url: str, elsewhere: bool) -> None:
        capture = config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            show(f"\n{text}", url, elsewhere)

    def restore() -> None:
        captured.announce = show

    captured.announce = announce
    config.add_cleanup(restore)
    if config.getoption("tx", None) and not hasattr(config, "workerinput"):  # the controller of pytest-xdist
        _lend(config)


def _lend(config: pytest.Config) -> None:
    from py_ort import BrowserOptions
    from py_ort.browser.borrowed import LENDER
    from py_ort.browser.loop import loop_thread
    from py_ort.browser.pool import pool

    async def lend() -> str:
        return await pool().lend(BrowserOptions(browser="capture"))

    def forget() -> None:
        os.environ.pop(LENDER, None)

    os.environ[LENDER] = loop_thread().call(lend())  # the workers inherit it
    config.add_cleanup(forget)


def is_lent(browser: str) -> bool:
    """Return True if a browser is one that another process lends to this one."""
    from py_ort.browser.borrowed import LENDER

    return browser == "capture" and LENDER in os.environ

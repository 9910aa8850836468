"""Sessions in a browser that the caller drives, as a test does with Playwright's fixtures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.browser_shares import Lease
from py_ort.browser.launchers.caller import SCHEME, url_for
from py_ort.browser.loop import loop_thread
from py_ort.browser.pool import pool

_numbers = itertools.count(1)


@contextmanager
def given(open_page: Callable[[str], None], like: BrowserOptions | None = None) -> Iterator[BrowserOptions]:
    """Yield the options for sessions in a page that the caller opens.

    Args:
        open_page: Opens a URL of this machine, or of `like.host`, in the browser, in a tab or a frame. It is called
            once, in this thread, and may raise.
        like: All options except `browser`; its `launch_timeout` limits the seconds until the page answers.

    Raises:
        BrowserError: The page did not answer.
    """
    options = replace(like or BrowserOptions(), browser=f"{SCHEME}{next(_numbers)}", idle_timeout=3600)
    url, acquired = url_for(options.browser), loop_thread().submit(_acquire(options))
    either: list[Future[Any]] = [url, acquired]
    try:
        wait(either, return_when=FIRST_COMPLETED)
        if url.done():
            open_page(url.result())
        lease = acquired.result()
    except BaseException:
        acquired.cancel()
        raise
    try:
        yield options
    finally:
        loop_thread().call(_give_back(lease))


async def _acquire(options: BrowserOptions) -> Lease:
    return await pool().acquire(options)


async def _give_back(lease: Lease) -> None:
    pool().retire(lease)
    pool().release(lease)

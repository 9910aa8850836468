"""A browser for one page of another server; the browser ends when the page has done its work."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from py_ort.browser import sandbox
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.launchers import launcher_for
from py_ort.exceptions import PyOrtError, Timeout

T = TypeVar("T")


async def visit(
    options: BrowserOptions, url: str, arrived: asyncio.Event, done: asyncio.Future[T], timeout: float
) -> tuple[str, T]:
    """Open a page in a browser; return the browser's name and version, and the result of the page's work.

    Args:
        options: The browser.
        url: URL of the page.
        arrived: Set at the page's first request.
        done: Receives the result.
        timeout: Seconds for the work.

    Raises:
        BrowserError: The browser could not be started, crashed, or did not open the page.
        Timeout: The work took longer.
    """
    return await sandbox.once_more_without(
        options.browser, options.sandbox, lambda: _visit(options, url, arrived, done, timeout)
    )


async def _visit(
    options: BrowserOptions, url: str, arrived: asyncio.Event, done: asyncio.Future[T], timeout: float
) -> tuple[str, T]:
    lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_lost(error: PyOrtError) -> None:
        if not lost.done():
            lost.set_exception(error)

    launcher = launcher_for(options)(options, on_lost)
    try:
        async with asyncio.timeout(options.launch_timeout):
            await launcher.start(url)
            await _first(asyncio.ensure_future(arrived.wait()), lost)
        async with asyncio.timeout(timeout):
            return launcher.description, await _first(asyncio.shield(done), lost)
    except TimeoutError:
        what = "run the model" if arrived.is_set() else "open the page"
        seconds = timeout if arrived.is_set() else options.launch_timeout
        raise Timeout(f"{launcher.description} did not {what} within {seconds:g} s") from None
    finally:
        lost.cancel()
        await launcher.close()


async def _first(wanted: asyncio.Future[T], lost: asyncio.Future[None]) -> T:
    """Wait for a future, or for the browser's end."""
    try:
        both: list[asyncio.Future[T] | asyncio.Future[None]] = [wanted, lost]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not wanted.done():
            lost.result()
        return await wanted
    finally:
        wanted.cancel()

"""Chromium through Playwright's asyncio API."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, ClassVar

from py_ort.browser import find
from py_ort.browser.launchers import Launcher
from py_ort.exceptions import BrowserCrashed, PageCrashed

_log = logging.getLogger("py_ort.browser")
_console = logging.getLogger("py_ort.page.console")
_CONSOLE_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}

_driver: Any = None
_starting: asyncio.Lock | None = None


async def driver() -> Any:
    """Return Playwright, its driver process started at the first call."""
    global _driver, _starting
    if _starting is None:
        _starting = asyncio.Lock()
    async with _starting:
        if _driver is None:
            from playwright.async_api import async_playwright

            _driver = await async_playwright().start()
    return _driver


async def stop_driver() -> None:
    """End the driver process."""
    global _driver
    if _driver is not None:
        stopping, _driver = _driver, None
        await stopping.stop()


def forget_driver() -> None:
    """In a forked child, which cannot use its parent's driver."""
    global _driver, _starting
    _driver = _starting = None


class PlaywrightLauncher(Launcher):
    """A browser process of our own, driven by Playwright."""

    name: ClassVar[str] = "playwright"
    _browser: Any = None
    _closing = False

    async def start(self, url: str) -> None:
        binary = await asyncio.to_thread(find.binary, self.options.browser)
        await self._open(await self._connect(str(binary)), url)

    async def _connect(self, binary: str) -> Any:
        from playwright.async_api import Error

        try:
            return await (await driver()).chromium.launch(
                executable_path=binary,
                headless=self.options.headless,
                args=self.options.command_line(),
                env=self.options.environment(),
                timeout=self.options.launch_timeout * 1000,
                # An interrupt is Python's to handle; in Jupyter it must not end the browser.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except Error as e:
            raise BrowserCrashed(f"{binary} did not start: {e.message.strip()}") from e

    async def _open(self, browser: Any, url: str) -> None:
        from playwright.async_api import Error

        self._browser = browser
        self.description = f"{browser.browser_type.name} {browser.version}"
        browser.on("disconnected", lambda _: self._lost(BrowserCrashed(f"the process of {self.description} ended")))
        try:
            page = await browser.new_page()
            page.on("crash", lambda _: self._lost(PageCrashed("the page crashed")))
            page.on("close", lambda _: self._page_closed())
            page.on("console", self._print_console)
            page.on("pageerror", lambda error: _console.error("%s", error))
            await page.goto(url, wait_until="commit", timeout=self.options.launch_timeout * 1000)
        except Error as e:
            raise BrowserCrashed(f"{self.description} did not open the page: {e.message.strip()}") from e

    def _print_console(self, message: Any) -> None:
        # Once it is connected, the worker sends its console's warnings and errors itself.
        level = logging.DEBUG if self.connected else _CONSOLE_LEVELS.get(message.type, logging.DEBUG)
        _console.log(level, "%s", message.text)

    def _page_closed(self) -> None:
        # A browser that dies closes its pages first: its own event, just behind, says more.
        error = PageCrashed("the page was closed")
        asyncio.get_running_loop().call_later(0.3, lambda: self._lost(error))

    def _lost(self, error: Any) -> None:
        if not self._closing:
            self.on_lost(error)

    async def close(self) -> None:
        self._closing = True
        if self._browser is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._browser.close(), 10)

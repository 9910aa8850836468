"""Chromium through Playwright's asyncio API."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar

from py_ort.browser import find
from py_ort.browser.launchers import Launcher, devtools
from py_ort.exceptions import BrowserCrashed, PageCrashed

T = TypeVar("T")
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


async def drive(action: Callable[[Any], Awaitable[T]]) -> T:
    """Have Playwright do something; once more, with a new driver process, if its driver turns out to be dead."""
    from playwright.async_api import Error

    playwright = await driver()
    try:
        return await action(playwright)
    except Error:
        if await _answers(playwright):
            raise
    _log.warning("Playwright's driver process ended: starting another")
    if _driver is playwright:
        await stop_driver()
    return await action(await driver())


async def _answers(playwright: Any) -> bool:
    from playwright.async_api import Error

    try:
        await (await playwright.request.new_context()).dispose()
    except Error:
        return False
    return True


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
        await self._open(await self._connect(str(binary)), url, self._own_page)

    async def _connect(self, binary: str) -> Any:
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TookTooLong

        def launch(playwright: Any) -> Awaitable[Any]:
            return playwright.chromium.launch(
                executable_path=binary,
                headless=self.options.headless,
                args=self.options.command_line(),
                # Playwright's own default is off; our flags decide.
                chromium_sandbox=True,
                env=self.options.environment(),
                timeout=self.options.launch_timeout * 1000,
                # An interrupt is Python's to handle; in Jupyter it must not end the browser.
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )

        try:
            return await drive(launch)
        except TookTooLong as e:
            raise TimeoutError from e
        except Error as e:
            raise BrowserCrashed(f"{binary} did not start: {e.message.strip()}") from e

    async def _open(self, browser: Any, url: str, open_page: Callable[[Any, str], Awaitable[None]]) -> None:
        from playwright.async_api import Error

        self._browser = browser
        self.description = f"{browser.browser_type.name} {browser.version}"
        browser.on("disconnected", lambda _: self._lost(BrowserCrashed(f"the process of {self.description} ended")))
        try:
            await open_page(browser, url)
        except Error as e:
            raise BrowserCrashed(f"{self.description} did not open the page: {e.message.strip()}") from e

    async def _own_page(self, browser: Any, url: str) -> None:
        """Open a page that Playwright does not watch."""
        await devtools.open_page(browser, url, self._tell)

    async def _watched_page(self, browser: Any, url: str) -> None:
        """Open a page of Playwright's own, in a browser that others use as well."""
        page = await browser.new_page()
        page.on("crash", lambda _: self._tell("crash", "the page crashed"))
        page.on("close", lambda _: self._tell("close", "the page was closed"))
        page.on("console", lambda message: self._tell(message.type, message.text))
        page.on("pageerror", lambda error: self._tell("error", str(error)))
        await page.goto(url, wait_until="commit", timeout=self.options.launch_timeout * 1000)

    def _tell(self, kind: str, text: str) -> None:
        if kind == "crash":
            self._lost(PageCrashed(text))
        elif kind == "close":
            # A browser that dies closes its pages first: its own event, just behind, says more.
            asyncio.get_running_loop().call_later(0.3, lambda: self._lost(PageCrashed(text)))
        else:
            # Once it is connected, the worker sends its console's warnings and errors itself.
            _console.log(logging.DEBUG if self.connected else _CONSOLE_LEVELS.get(kind, logging.DEBUG), "%s", text)

    def _lost(self, error: Any) -> None:
        if not self._closing:
            self.on_lost(error)

    async def close(self) -> None:
        self._closing = True
        if self._browser is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._browser.close(), 10)

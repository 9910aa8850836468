"""Chromium through Playwright's asyncio API."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from py_ort.browser import find
from py_ort.browser.guard import Guard
from py_ort.browser.launchers import devtools
from py_ort.browser.launchers.chromium import temporary
from py_ort.browser.launchers.launcher import Launcher
from py_ort.browser.loop import end_of
from py_ort.exceptions import BrowserCrashed, PageCrashed

T = TypeVar("T")
_log = logging.getLogger("py_ort.browser")
_console = logging.getLogger("py_ort.page.console")
_CONSOLE_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}

#: Seconds for the answer of a driver process, which only forwards messages.
ANSWER_PATIENCE = 5.0

_driver: Any = None
#: Removes temporary files that a killed Chromium leaves behind.
_guard: Guard | None = None
#: Drivers that no longer answer. Their browsers may still be in use.
_stuck: list[Any] = []
_starting: asyncio.Lock | None = None


def _is_the_drivers(error: BaseException) -> bool:
    """Return True if an exception only says that the driver process ended."""
    return type(error).__module__.startswith("playwright.") or "reading from the driver" in str(error)


end_of(_is_the_drivers)


async def driver() -> Any:
    """Return Playwright; its driver process is started at the first call, and again when it no longer answers."""
    global _driver, _starting
    if _starting is None:
        _starting = asyncio.Lock()
    async with _starting:
        if _driver is not None and (trouble := await _trouble_of(_driver)):
            _log.warning("Playwright's driver process %s: starting another", trouble)
            _driver = None
        if _driver is None:
            from playwright.async_api import async_playwright

            _driver = await async_playwright().start()
    return _driver


async def drive(action: Callable[[Any], Awaitable[T]]) -> T:
    """Run an action with Playwright; again with a new driver process, if the driver dies."""
    from playwright.async_api import Error

    playwright = await driver()
    try:
        return await action(playwright)
    except Error:
        again = await driver()
        if again is playwright:
            raise
    return await action(again)


async def _trouble_of(playwright: Any) -> str:
    """Return a driver's failure, in words; "" if it answers."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(ANSWER_PATIENCE):
            await (await playwright.request.new_context()).dispose()
    except Error:
        await _stop(playwright)
        return "ended"
    except TimeoutError:
        _stuck.append(playwright)
        return "does not answer"
    return ""


async def stop_driver() -> None:
    """End the driver process."""
    global _driver, _guard
    stopping, _driver = [*_stuck, *([] if _driver is None else [_driver])], None
    _stuck.clear()
    await asyncio.gather(*map(_stop, stopping))
    guard, _guard = _guard, None
    if guard is not None:
        await guard.end()


async def _stop(playwright: Any) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(ANSWER_PATIENCE):
            await playwright.stop()


def _temporary(binary: Path) -> dict[str, str]:
    """Return variables that put a browser's temporary files into a folder that is removed with this process."""
    global _guard
    if find.readable_folder(binary):
        return {}  # a snap has a folder of its own
    if _guard is None:
        _guard = Guard("py_ort-")
    return temporary(_guard.folder)


def forget_driver() -> None:
    """Forget the driver in a forked child, which cannot use its parent's."""
    global _driver, _guard, _starting
    _driver = _guard = _starting = None
    _stuck.clear()


class PlaywrightLauncher(Launcher):
    """A browser process of our own, driven by Playwright."""

    name: ClassVar[str] = "playwright"
    _browser: Any = None
    #: Session of the debugging protocol, with a browser of our own.
    _session: Any = None
    _closing = False

    @classmethod
    def load(cls) -> None:
        import playwright.async_api  # noqa: F401  # takes a while

    @classmethod
    async def prepare(cls) -> None:
        await driver()

    async def start(self, url: str) -> None:
        binary = await asyncio.to_thread(find.binary, self.options.browser)
        await self._open(await self._connect(binary), url, self._own_page)

    async def _connect(self, binary: Path) -> Any:
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TookTooLong

        def launch(playwright: Any) -> Awaitable[Any]:
            return playwright.chromium.launch(
                executable_path=str(binary),
                headless=self.options.headless,
                args=self.options.command_line(),
                # Playwright's own default is off; our flags decide.
                chromium_sandbox=True,
                env={**self.options.environment(), **_temporary(binary)},
                timeout=self.options.launch_timeout * 1000,
                # Python handles interrupts; in Jupyter they must not end the browser.
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
        self._session = await devtools.open_page(browser, url, self._tell)

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
            # A dying browser closes its pages first; its own event follows at once, and says more.
            asyncio.get_running_loop().call_later(0.3, lambda: self._lost(PageCrashed(text)))
        else:
            # Once it is connected, the worker sends its console's warnings and errors itself.
            _console.log(logging.DEBUG if self.connected else _CONSOLE_LEVELS.get(kind, logging.DEBUG), "%s", text)

    def _lost(self, error: Any) -> None:
        if not self._closing:
            self.on_lost(error)

    async def check(self) -> None:
        try:
            if self._session is not None:
                await self._session.send("Browser.getVersion")
        except Exception as e:  # Playwright reports the end of its driver by a plain Exception
            raise BrowserCrashed(f"the process of {self.description} ended: {e}") from e

    async def close(self) -> None:
        self._closing = True
        if self._browser is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._browser.close(), 10)

"""Captured browsers: each opened one URL, waits there for pages of sessions, and returns when a session's page ends."""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlencode

from py_ort.browser.page import Page
from py_ort.exceptions import PyOrtError, Timeout
from py_ort.schema.gen.OpenWorker import OpenWorkerT

#: Seconds for a browser to return from one session's page to the URL, before people are asked for another browser.
RETURN = 3.0
#: Seconds for a waiting page to confirm that it opens a session's page.
_CONFIRMATION = 10.0
#: Parts of a user agent that name a browser: the first that matches is the name.
_NAMES = {
    "edge": r"Edg(?:A|iOS)?/",
    "qtwebengine": "QtWebEngine/",
    "firefox": "(?:Firefox|FxiOS)/",
    "chrome": "(?:Headless)?Chrome/|CriOS/",
    "safari": r"Version/(?=.*Safari/)",
}


def browser_of(user_agent: str) -> str:
    """Return name and version of the browser with this user agent, as "firefox 153.0"."""
    for name, pattern in _NAMES.items():
        if found := re.search(rf"(?:{pattern})([\d.]+)", user_agent):
            return f"{name} {found[1]}"
    return user_agent


def system_of(user_agent: str) -> str:
    """Return the system in a user agent, as "Windows NT 10.0; Win64; x64"."""
    return found[1] if (found := re.search(r"\(([^)]+)\)", user_agent)) else ""


def _print(text: str, url: str, elsewhere: bool) -> None:
    print(text, file=sys.stderr, flush=True)
    if elsewhere:  # a phone's camera reads it
        import segno

        segno.make(url, error="l").terminal(out=sys.stderr, compact=True)


def none_came(patience: float) -> Timeout:
    """Return the error of no browser being captured within so many seconds."""
    return Timeout(
        f"no browser was captured within {patience:g} s: none opened the URL, or all left "
        "(BrowserOptions(launch_timeout=…) allows more)"
    )


#: Shows people the text with the URL; arguments: the text, the URL, True for browsers of other machines.
announce: Callable[[str, str, bool], None] = _print


class Captured:
    """The browsers that one URL captures; all methods run in the loop's thread.

    Args:
        url: Returns the URL for a value of the page's parameter `capture`.
        elsewhere: True for browsers of other machines.

    Attributes:
        token: The value of that parameter; the pages connect with it.
        url: The URL.
        lending: The token for other processes of py_ort that borrow a browser.
    """

    def __init__(self, url: Callable[[str], str], elsewhere: bool) -> None:
        self.token, self.lending = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.url = url(self.token)
        self._elsewhere = elsewhere
        self._waiting: deque[Page] = deque()
        self._sharing = self._takers = 0
        self._changed = asyncio.Event()
        self._announced = self._seen = False

    def arrived(self, page: Page) -> None:
        """Add a browser whose page said hello."""
        self._seen, self._announced = True, False
        self._waiting.append(page)
        self._changed.set()

    def share(self, more: int) -> None:
        """Count browsers that share the work of one caller of `take`; meanwhile people are not asked for more."""
        self._sharing += more
        self._changed.set()

    async def open(self, url: str, patience: float) -> None:
        """Open a session's page in the next browser; `patience` as for `take`."""
        while True:
            page = await self.take(patience)
            with suppress(PyOrtError):
                await self.send(page, url)
                return

    async def send(self, page: Page, url: str) -> None:
        """Open a session's page in a browser.

        Args:
            page: The browser's waiting page.
            url: The session's page.

        Raises:
            PyOrtError: The browser has left.
        """
        body = OpenWorkerT()
        body.script, body.port, body.token = f"{url}&{urlencode({'return': self.url})}", 0, ""
        try:
            await page.request(body, timeout=_CONFIRMATION)
        except PyOrtError:
            await page.close()
            raise

    async def take(self, patience: float) -> Page:
        """Return the waiting page of a browser, once there is one.

        Args:
            patience: Seconds to wait while no browser is captured.

        Raises:
            Timeout: No browser was captured.
        """
        self._takers += 1
        try:
            return await self._next(patience)
        finally:
            self._takers -= 1
            if not self._takers:
                self._announced = False

    async def _next(self, patience: float) -> Page:
        loop = asyncio.get_running_loop()
        until = loop.time() + patience
        while True:
            while self._waiting:
                if not (page := self._waiting.popleft()).lost:
                    return page
            self._changed.clear()
            if self._sharing:
                await self._changed.wait()
                until = loop.time() + patience
            elif loop.time() >= until:
                raise none_came(patience)
            elif self._announced:
                await self._changes_within(until - loop.time())
            elif not self._seen or not await self._changes_within(min(RETURN, patience / 4)):
                self._ask(patience)

    async def _changes_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._changed.wait()
        return False

    def _ask(self, patience: float) -> None:
        """Ask people for a browser; not again before one is captured or all callers of `take` have left."""
        self._announced = True
        announce(
            f"py_ort: waiting up to {patience:g} s for a browser to run models in. Open this URL in one, or in "
            f"several, which share the work; it stays valid until Python ends:\n  {self.url}",
            self.url,
            self._elsewhere,
        )

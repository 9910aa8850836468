"""The launcher for a browser that the caller drives: the caller receives the URL and opens it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import ClassVar

from py_ort.browser.captured import browser_of, system_of
from py_ort.browser.launchers.launcher import Launcher
from py_ort.exceptions import BrowserCrashed

SCHEME = "given:"
#: Futures of URLs by the browser's name, until the browser is asked to open a page.
_waiting: dict[str, Future[str]] = {}


def url_for(name: str) -> Future[str]:
    """Return the future of the URL for the browser of this name."""
    return _waiting.setdefault(name, Future())


class GivenLauncher(Launcher):
    """Passes the URL to the caller; only once, because the page is the caller's."""

    name: ClassVar[str] = "given"
    replaceable: ClassVar[bool] = False

    async def start(self, url: str) -> None:
        waiting = _waiting.pop(self.options.browser, None)
        if waiting is None:
            raise BrowserCrashed("the page that sessions were given is gone: it was closed, or went to another URL")
        waiting.set_result(url)

    def met(self, user_agent: str) -> None:
        self.description, self.system = browser_of(user_agent), system_of(user_agent)

    async def close(self) -> None:
        """Do nothing: the caller closes the page."""

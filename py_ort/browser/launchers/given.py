"""A browser that the caller drives: it is told the URL, and opens it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import ClassVar

from py_ort.browser.captured import browser_of, system_of
from py_ort.browser.launchers.launcher import Launcher
from py_ort.exceptions import BrowserCrashed

SCHEME = "given:"
#: By the name of a browser, until it is asked to open a page: who waits for the URL.
_waiting: dict[str, Future[str]] = {}


def url_for(name: str) -> Future[str]:
    """Return the URL that the browser of this name shall open, once there is one."""
    return _waiting.setdefault(name, Future())


class GivenLauncher(Launcher):
    """Tells the URL to whoever gave the browser; once, as the page is theirs."""

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
        """The page is not ours to close."""

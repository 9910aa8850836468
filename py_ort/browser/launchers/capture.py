"""The launcher for captured browsers: people open one URL in any browser."""

from __future__ import annotations

from typing import ClassVar

from py_ort.browser import captured
from py_ort.browser.borrowed import Borrowed
from py_ort.browser.captured import Captured, browser_of, system_of
from py_ort.browser.launchers.launcher import Launcher


class CaptureLauncher(Launcher):
    """Opens the URL in a captured browser, of this machine, or with `host` of another.

    Attributes:
        captured: Captured browsers of this process, or of another one; None: people are asked to open each URL.
    """

    name: ClassVar[str] = "capture"
    replaceable: ClassVar[bool] = False
    captured: Captured | Borrowed | None = None

    async def reach(self, url: str) -> None:
        if self.captured is not None:
            await self.captured.open(url, self.options.launch_timeout)

    async def start(self, url: str) -> None:
        if self.captured is None:
            text = f"py_ort: open this in a browser within {self.options.launch_timeout:g} s:\n  {url}"
            captured.announce(text, url, bool(self.options.host))

    def met(self, user_agent: str) -> None:
        self.description, self.system = browser_of(user_agent), system_of(user_agent)

    async def close(self) -> None:
        """Return a borrowed browser; other captured browsers stay open."""
        if isinstance(self.captured, Borrowed):
            await self.captured.close()

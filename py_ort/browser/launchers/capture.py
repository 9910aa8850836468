"""No browser of our own: one URL captures any browser that opens it."""

from __future__ import annotations

from typing import ClassVar

from py_ort.browser import captured
from py_ort.browser.borrowed import Borrowed
from py_ort.browser.captured import Captured, browser_of, system_of
from py_ort.browser.launchers.launcher import Launcher


class CaptureLauncher(Launcher):
    """Has a captured browser open the URL: of this machine, or with `host` of another one.

    Attributes:
        captured: The captured browsers, of this process or of another; None: people are asked to open each URL.
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
        """The browser is not ours to close."""
        if isinstance(self.captured, Borrowed):
            await self.captured.close()

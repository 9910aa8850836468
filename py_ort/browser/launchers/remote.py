"""A browser that runs already: `cdp:URL` (its debugging port) or `playwright:WSURL` (a Playwright server)."""

from __future__ import annotations

from typing import ClassVar

from py_ort.browser.launchers.with_playwright import PlaywrightLauncher, drive
from py_ort.exceptions import BrowserNotFound


class RemoteLauncher(PlaywrightLauncher):
    """Opens a page in somebody else's browser. Where it runs elsewhere, pages need `host` (see `BrowserOptions`)."""

    name: ClassVar[str] = "remote"
    replaceable: ClassVar[bool] = False

    async def start(self, url: str) -> None:
        from playwright.async_api import Error

        scheme, _, address = self.options.browser.partition(":")
        how, timeout = "connect_over_cdp" if scheme == "cdp" else "connect", self.options.launch_timeout * 1000
        try:
            browser = await drive(lambda playwright: getattr(playwright.chromium, how)(address, timeout=timeout))
        except Error as e:
            raise BrowserNotFound(f"no browser answers at {address}: {e.message.strip()}") from e
        await self._open(browser, url, self._watched_page)

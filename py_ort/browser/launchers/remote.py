"""A browser that is already running (`cdp:URL`, its debugging port), or of a Playwright server (`playwright:WSURL`)."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from py_ort.browser.launchers.with_playwright import PlaywrightLauncher, drive
from py_ort.exceptions import BrowserNotFound


class RemoteLauncher(PlaywrightLauncher):
    """Opens a page in another user's browser. On other machines its pages need `host` (see `BrowserOptions`)."""

    name: ClassVar[str] = "remote"
    replaceable: ClassVar[bool] = False

    async def start(self, url: str) -> None:
        from playwright.async_api import Error

        scheme, _, address = self.options.browser.partition(":")
        more: dict[str, Any] = {}
        how = "connect_over_cdp"
        if scheme == "playwright":
            # A server takes flags only if it is started with --unsafe.
            launch = {"headless": self.options.headless, "args": self.options.flags_elsewhere()}
            how, more = "connect", {"headers": {"x-playwright-launch-options": json.dumps(launch)}}
        more["timeout"] = self.options.launch_timeout * 1000
        try:
            browser = await drive(lambda playwright: getattr(playwright.chromium, how)(address, **more))
        except Error as e:
            raise BrowserNotFound(f"no browser answers at {self.options.name}: {e.message.strip()}") from e
        await self._open(browser, url, self._watched_page)

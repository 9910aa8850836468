"""Ways to get a browser that opens a URL. Each launcher is a class with `start(url)` and `close()`."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

from py_ort.browser import find
from py_ort.browser.browser_options import CAPTURE
from py_ort.browser.launchers import caller
from py_ort.browser.launchers.launcher import Launcher
from py_ort.exceptions import BrowserNotFound, InvalidArgument

if TYPE_CHECKING:
    from py_ort.browser.browser_options import BrowserOptions

_SCHEMES = ("cdp:", "playwright:")


def _check_playwright(otherwise: str) -> None:
    """Raise BrowserNotFound if Playwright is not installed; exports of models do not need it."""
    if "playwright" not in sys.modules and importlib.util.find_spec("playwright") is None:
        raise BrowserNotFound(f"Playwright is not installed (`pip install playwright`); {otherwise}")


def launcher_for(options: BrowserOptions) -> type[Launcher]:
    """Return the launcher for these options."""
    if options.browser == CAPTURE:
        from py_ort.browser.launchers.capture import CaptureLauncher

        return CaptureLauncher
    if options.browser.startswith(_SCHEMES):
        _check_playwright("a browser elsewhere is reached with it")
        from py_ort.browser.launchers.remote import RemoteLauncher

        return RemoteLauncher
    if options.browser.startswith("webdriver:"):
        from py_ort.browser.launchers.webdriver import WebDriverLauncher

        return WebDriverLauncher
    if options.browser.startswith(caller.SCHEME):
        return caller.GivenLauncher
    family = find.family(options.browser)
    if family in ("firefox", "webkit", "qtwebengine"):
        if options.launcher == "playwright":
            raise InvalidArgument(
                f"launcher='playwright' drives Chromium only: {options.browser!r} is started with launcher='process'"
            )
        if family == "firefox":
            from py_ort.browser.launchers.firefox import FirefoxLauncher

            return FirefoxLauncher
        if family == "qtwebengine":
            from py_ort.browser.launchers.qtwebengine import QtWebEngineLauncher

            return QtWebEngineLauncher
        from py_ort.browser.launchers.webkit import WebKitLauncher

        return WebKitLauncher
    if options.launcher == "process":
        from py_ort.browser.launchers.chromium import ChromiumLauncher

        return ChromiumLauncher
    _check_playwright("launcher='process' starts an installed browser without it")
    from py_ort.browser.launchers.with_playwright import PlaywrightLauncher

    return PlaywrightLauncher

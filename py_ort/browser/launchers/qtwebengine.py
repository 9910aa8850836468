"""QtWebEngine, the web view of apps, as a plain process; it is part of the PySide6 installed for this Python.

Playwright cannot drive it: QtWebEngine lacks `Browser.setDownloadBehavior` of the debugging protocol.
"""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from py_ort.browser import find, sandbox
from py_ort.browser.browser_options import QUIET
from py_ort.browser.launchers.process import Command, ProcessLauncher
from py_ort.exceptions import BrowserNotFound

_SCRIPT = Path(__file__).with_name("qt_view.py")
_NO_SANDBOX = "QTWEBENGINE_DISABLE_SANDBOX"


class QtWebEngineLauncher(ProcessLauncher):
    """A Python process with one view; headless on Qt's platform "offscreen"."""

    def command(self, url: str, profile: Path) -> Command:
        binary = find.binary(self.options.browser)
        if binary not in find.installed("qtwebengine"):
            raise BrowserNotFound(
                f"{binary} is not the QtWebEngine of this Python's PySide6: use browser='qtwebengine', behind "
                f"{find.FAMILIES['qtwebengine'].install}"
            )
        environment = {
            **self.options.environment(),
            # Folders for its caches; there is no profile on the disk.
            **dict.fromkeys(("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"), str(profile)),
            **({"QT_QPA_PLATFORM": "offscreen"} if self.options.headless else {}),
            **dict(self.options.env),
        }
        given = _NO_SANDBOX in environment
        if not given and sandbox.off(self.options.browser, self.options.sandbox, "QtWebEngine", sandbox.root()):
            environment[_NO_SANDBOX] = "1"
        # -P: no imports from the script's folder.
        command = [sys.executable, "-P", str(_SCRIPT), url2pathname(urlsplit(url).path), *QUIET, *self.options.flags]
        return Command(command, environment, find.version(binary))

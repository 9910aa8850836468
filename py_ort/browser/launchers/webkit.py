"""WebKitGTK's MiniBrowser as a plain process, with a virtual display if it is headless."""

from __future__ import annotations

import shutil
from pathlib import Path

from py_ort.browser import find, sandbox
from py_ort.browser.launchers.process import Command, ProcessLauncher
from py_ort.exceptions import BrowserNotFound

_SANDBOX = "--enable-sandbox"
#: Variables for features of WebKit that are off by default.
FEATURES = {"JSC_useSharedArrayBuffer": "1", "JSC_useWasmRelaxedSIMD": "1"}


class WebKitLauncher(ProcessLauncher):
    """MiniBrowser. It has no headless mode, so a headless one draws on a virtual display (Xvfb)."""

    def command(self, url: str, profile: Path) -> Command:
        binary = find.binary(self.options.browser)
        environment = {
            **self.options.environment(),
            **FEATURES,
            "HOME": str(profile),
            "XDG_RUNTIME_DIR": str(profile),
            "GSETTINGS_BACKEND": "memory",
            "NO_AT_BRIDGE": "1",
        }
        if self.options.headless:
            try:
                environment |= self.virtual_display(profile)
            except OSError as e:
                hint = "BrowserOptions(headless=False) uses the display there is"
                raise BrowserNotFound(f"WebKit needs a display: {e}; {hint}") from None
        description = find.version(binary, environment) or binary.name
        flags = ["--private", *self._sandbox(binary), *self.options.flags]
        return Command([str(binary), *flags, url], environment, description)

    def _sandbox(self, binary: Path) -> list[str]:
        """Return the flag for the sandbox: off by default in WebKitGTK for GTK 3, always on in that for GTK 4."""
        if "webkit2gtk-4" not in str(binary.resolve()) or _SANDBOX in self.options.flags:
            return []
        missing = " and ".join(tool for tool in ("bwrap", "xdg-dbus-proxy") if shutil.which(tool) is None)
        help_ = "What helps: apt-get install bubblewrap xdg-dbus-proxy"
        obstacle = f"it needs {missing}, not installed here. {help_}" if missing else ""
        off = sandbox.off(self.options.browser, self.options.sandbox, "WebKit", obstacle)
        return [] if off else [_SANDBOX]

"""WebKitGTK's MiniBrowser as a plain process; without a display it gets a virtual one."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from py_ort.browser import find, sandbox
from py_ort.browser.launchers.process import Command, ProcessLauncher
from py_ort.exceptions import BrowserNotFound

_SANDBOX = "--enable-sandbox"
#: What WebKit has but keeps off.
FEATURES = {"JSC_useSharedArrayBuffer": "1", "JSC_useWasmRelaxedSIMD": "1"}
#: A command to put before another, which gets SIGTERM when this process ends (PR_SET_PDEATHSIG; Linux only).
_DIES_WITH_US = [
    *(sys.executable, "-I", "-S", "-c"),
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execvp(sys.argv[1], sys.argv[1:])",
]


def _authority(cookie: bytes) -> bytes:
    """Return an X authority file: who knows the cookie may see and use the display, and nobody else."""
    anywhere, fields = 0xFFFF, (b"", b"", b"MIT-MAGIC-COOKIE-1", cookie)  # address and number of the display: any
    return struct.pack(">H", anywhere) + b"".join(struct.pack(">H", len(field)) + field for field in fields)


class WebKitLauncher(ProcessLauncher):
    """MiniBrowser. It has no headless mode: without a window wanted, it draws on a virtual display (Xvfb)."""

    _display: subprocess.Popen[bytes] | None = None

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
            key = profile / "display.key"
            key.write_bytes(_authority(secrets.token_bytes(16)))
            key.chmod(0o600)
            environment |= {"DISPLAY": self._virtual_display(key), "XAUTHORITY": str(key), "GDK_BACKEND": "x11"}
        description = find.version(binary, environment) or binary.name
        flags = ["--private", *self._sandbox(binary), *self.options.flags]
        return Command([str(binary), *flags, url], environment, description)

    def _sandbox(self, binary: Path) -> list[str]:
        """WebKitGTK of GTK 3 has its sandbox off; that of GTK 4 has no switch, and it on."""
        if "webkit2gtk-4" not in str(binary.resolve()) or _SANDBOX in self.options.flags:
            return []
        missing = " and ".join(tool for tool in ("bwrap", "xdg-dbus-proxy") if shutil.which(tool) is None)
        help_ = "What helps: apt-get install bubblewrap xdg-dbus-proxy"
        obstacle = f"it needs {missing}, not installed here. {help_}" if missing else ""
        off = sandbox.off(self.options.browser, self.options.sandbox, "WebKit", obstacle)
        return [] if off else [_SANDBOX]

    def _virtual_display(self, key: Path) -> str:
        server = shutil.which("Xvfb")
        if server is None:
            raise BrowserNotFound(
                "WebKit needs a display, and there is no Xvfb to make one (Debian: apt-get install xvfb); "
                "BrowserOptions(headless=False) uses the display there is"
            )
        ours, theirs = os.pipe()
        with os.fdopen(ours) as told:
            # It chooses a number that is free, and writes it when it is ready.
            screen = ["-screen", "0", "1280x800x24", "-nolisten", "tcp", "-auth", str(key)]
            self._display = subprocess.Popen(
                [*(_DIES_WITH_US if sys.platform == "linux" else ()), server, "-displayfd", str(theirs), *screen],
                pass_fds=(theirs,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            os.close(theirs)
            number = told.readline().strip()
        if not number:
            raise BrowserNotFound("Xvfb did not start: WebKit has no display")
        return f":{number}"

    async def close(self) -> None:
        await super().close()
        display, self._display = self._display, None
        if display is not None:
            display.terminate()
            for _ in range(150):
                if display.poll() is not None:
                    return
                await asyncio.sleep(0.02)
            display.kill()

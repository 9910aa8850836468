"""A virtual display (Xvfb) for browsers that need a screen, for WebGL or at all."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import struct
import subprocess
import sys
from pathlib import Path

#: A command to put before another, which gets SIGTERM when this process ends (PR_SET_PDEATHSIG; Linux only).
_DIES_WITH_US = [
    *(sys.executable, "-I", "-S", "-c"),
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execvp(sys.argv[1], sys.argv[1:])",
]


class VirtualDisplay:
    """A display that only processes with the given environment may see and use.

    Args:
        profile: The folder for the display's key.

    Raises:
        OSError: Xvfb is not installed, or did not start.
    """

    def __init__(self, profile: Path) -> None:
        key = profile / "display.key"
        key.write_bytes(_authority(secrets.token_bytes(16)))
        key.chmod(0o600)
        server = shutil.which("Xvfb")
        if server is None:
            raise OSError("there is no Xvfb to make one (Debian: apt-get install xvfb)")
        ours, theirs = os.pipe()
        with os.fdopen(ours) as told:
            # Xvfb chooses a free number, and writes the number when the display is ready.
            screen = ["-screen", "0", "1280x800x24", "-nolisten", "tcp", "-auth", str(key)]
            self._process = subprocess.Popen(
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
            raise OSError("Xvfb did not start")
        self.environment = {"DISPLAY": f":{number}", "XAUTHORITY": str(key), "GDK_BACKEND": "x11"}

    async def close(self) -> None:
        """End the display."""
        self._process.terminate()
        for _ in range(150):
            if self._process.poll() is not None:
                return
            await asyncio.sleep(0.02)
        self._process.kill()


def _authority(cookie: bytes) -> bytes:
    """Return an X authority file: who knows the cookie may see and use the display, and nobody else."""
    anywhere, fields = 0xFFFF, (b"", b"", b"MIT-MAGIC-COOKIE-1", cookie)  # address and number of the display: any
    return struct.pack(">H", anywhere) + b"".join(struct.pack(">H", len(field)) + field for field in fields)

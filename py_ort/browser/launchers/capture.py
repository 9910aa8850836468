"""No browser of our own: print a URL that any browser may open."""

from __future__ import annotations

import sys
from typing import ClassVar

from py_ort.browser.launchers.launcher import Launcher


class CaptureLauncher(Launcher):
    """Waits for a person, or another tool, to open the URL in a browser on this machine, or with `host` on another."""

    name: ClassVar[str] = "capture"
    replaceable: ClassVar[bool] = False

    async def start(self, url: str) -> None:
        print(
            f"py_ort: open this in a browser within {self.options.launch_timeout:g} s:\n  {url}",
            file=sys.stderr,
            flush=True,
        )
        if self.options.host:  # a phone's camera reads it
            import segno

            segno.make(url, error="l").terminal(out=sys.stderr, compact=True)

    async def close(self) -> None:
        """The browser is not ours to close."""

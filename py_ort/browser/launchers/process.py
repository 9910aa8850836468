"""A browser as a plain process with a URL as argument: no Playwright, no debugging protocol."""

from __future__ import annotations

import asyncio
import html
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from py_ort.browser import find
from py_ort.browser.guard import Guard
from py_ort.browser.launchers.launcher import Launcher
from py_ort.browser.launchers.virtual_display import VirtualDisplay
from py_ort.exceptions import BrowserCrashed

#: A page that leads to the URL. The URL has a token, and every user of the machine can read command lines.
_START = """<!doctype html>
<meta charset="utf-8">
<title>py_ort</title>
<meta http-equiv="refresh" content="0; url={url}">
"""


@dataclass(frozen=True)
class Command:
    """A command that starts a browser.

    Attributes:
        arguments: The binary, its flags and the URL.
        environment: All environment variables.
        description: The browser and its version.
    """

    arguments: list[str]
    environment: dict[str, str]
    description: str


class ProcessLauncher(Launcher):
    """Any browser with a temporary profile, in its own process group, which ends with the browser."""

    name: ClassVar[str] = "process"
    _guard: Guard | None = None
    _watching: asyncio.Task[None] | None = None
    _display: VirtualDisplay | None = None

    def command(self, url: str, profile: Path) -> Command:
        """Return the command that opens a URL with the profile in this folder (empty except for our page)."""
        raise NotImplementedError

    def virtual_display(self, profile: Path) -> dict[str, str]:
        """Start a display for this browser; return the variables that name it.

        Raises:
            OSError: There is none.
        """
        self._display = VirtualDisplay(profile)
        return self._display.environment

    async def start(self, url: str) -> None:
        self._guard = guard = Guard("py_ort-", find.readable_folder(find.binary(self.options.browser)))
        first = guard.folder / "start.html"
        first.write_text(_START.format(url=html.escape(url)))
        command = await asyncio.to_thread(self.command, first.as_uri(), guard.folder)
        self.description = command.description
        guard.run(command.arguments, command.environment)
        self._watching = asyncio.ensure_future(self._watch(guard))

    async def _watch(self, guard: Guard) -> None:
        while (status := guard.status()) is None:
            await asyncio.sleep(0.1)
        said = ": ".join(
            filter(None, (f"the process of {self.description} ended with status {status}", guard.last_words()))
        )
        self.on_lost(BrowserCrashed(said))

    async def check(self) -> None:
        if self._guard is None or self._guard.status() is not None:
            raise BrowserCrashed(f"the process of {self.description} ended")

    async def close(self) -> None:
        if self._watching:
            self._watching.cancel()
        # Removed first, so that a second call finds nothing to close.
        guard, self._guard = self._guard, None
        if guard is not None:
            await guard.end()
        display, self._display = self._display, None
        if display is not None:
            await display.close()

"""A browser as a plain process that is given a URL: no Playwright, no debugging protocol."""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from py_ort.browser import find
from py_ort.browser.launchers.launcher import Launcher
from py_ort.exceptions import BrowserCrashed


def dies_with_us(environment: dict[str, str]) -> list[str]:
    """A command to put before another, which then ends with this process even if that is killed (Linux only)."""
    if sys.platform != "linux":
        return []
    pdeathsig = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])"
    # What the browser's environment has more is set behind Python, whose libraries may be others.
    more = [f"{name}={value}" for name, value in environment.items() if os.environ.get(name) != value]
    return [sys.executable, "-I", "-S", "-c", pdeathsig, *(["env", *more] if more else [])]


#: The same on Windows, where a console's Ctrl-C else ends the browser, too.
_OWN_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
#: A command line is for every user to read, so the URL with its token is not in it: this page leads there.
_START = """<!doctype html>
<meta charset="utf-8">
<title>py_ort</title>
<meta http-equiv="refresh" content="0; url={url}">
"""


@dataclass(frozen=True)
class Command:
    """What to start.

    Attributes:
        arguments: The binary, its flags and the URL.
        environment: All of its variables.
        description: The browser and its version.
    """

    arguments: list[str]
    environment: dict[str, str]
    description: str


class ProcessLauncher(Launcher):
    """Any browser with a temporary profile, in a process group of its own that is ended with it."""

    name: ClassVar[str] = "process"
    _process: subprocess.Popen[bytes] | None = None
    _profile: Path | None = None
    _watching: asyncio.Task[None] | None = None

    def command(self, url: str, profile: Path) -> Command:
        """Return how this browser is told to open a URL with the profile in this folder (empty, save for our page)."""
        raise NotImplementedError

    async def start(self, url: str) -> None:
        place = find.readable_folder(find.binary(self.options.browser))
        # Closed to other users, and so is what lies in it.
        self._profile = Path(tempfile.mkdtemp(prefix="py_ort-", dir=place))
        first = self._profile / "start.html"
        first.write_text(_START.format(url=html.escape(url)))
        command = await asyncio.to_thread(self.command, first.as_uri(), self._profile)
        self.description = command.description
        with (self._profile / "stderr.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*dies_with_us(command.environment), *command.arguments],
                env=command.environment if sys.platform != "linux" else None,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                creationflags=_OWN_GROUP,
            )
        self._watching = asyncio.ensure_future(self._watch(self._process))

    async def _watch(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            await asyncio.sleep(0.1)
        status = f"the process of {self.description} ended with status {process.returncode}"
        self.on_lost(BrowserCrashed(status + self._last_words()))

    def _last_words(self) -> str:
        if self._profile is None:
            return ""
        try:
            lines = (self._profile / "stderr.log").read_text(errors="replace").splitlines()[-5:]
        except OSError:
            return ""
        return ": " + " | ".join(line.strip() for line in lines) if lines else ""

    async def close(self) -> None:
        if self._watching:
            self._watching.cancel()
        # Taken first: who closes it a second time finds nothing.
        process, self._process = self._process, None
        profile, self._profile = self._profile, None
        if process is not None:
            await end(process)
        for _ in range(10):
            # What the browser's last processes wrote meanwhile goes, too.
            if profile is None or not profile.exists():
                return
            shutil.rmtree(profile, ignore_errors=True)
            await asyncio.sleep(0.05)


async def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, the leader of its group, and what is left of the group."""
    for how in (signal.SIGTERM, signal.SIGKILL) if sys.platform != "win32" else (signal.SIGTERM,):
        _signal(process, how)
        for _ in range(150):
            if process.poll() is not None:
                break
            await asyncio.sleep(0.02)


def _signal(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            # It has no groups to signal, but a program that ends a process with those that it started.
            command = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        else:
            os.killpg(process.pid, how)  # the group is the browser's own

"""A browser as a plain process that is given a URL: no Playwright, no debugging protocol."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import ClassVar

from py_ort.browser import find
from py_ort.browser.launchers import Launcher
from py_ort.exceptions import BrowserCrashed

_log = logging.getLogger("py_ort.browser")


class ProcessLauncher(Launcher):
    """Chromium with a temporary profile, in a process group of its own that is ended with it."""

    name: ClassVar[str] = "process"
    _process: subprocess.Popen[bytes] | None = None
    _profile: str | None = None
    _watching: asyncio.Task[None] | None = None

    async def start(self, url: str) -> None:
        binary = await asyncio.to_thread(find.chromium, self.options.browser)
        self.description = await asyncio.to_thread(find.version, binary) or binary.name
        self._profile = tempfile.mkdtemp(prefix="py_ort-")
        flags = self.options.command_line()
        if self.options.headless and not any(flag.startswith("--headless") for flag in flags):
            flags.insert(0, "--headless=new")
        with open(os.path.join(self._profile, "stderr.log"), "wb") as log:  # noqa: PTH118, PTH123
            self._process = subprocess.Popen(
                [str(binary), *flags, f"--user-data-dir={self._profile}", url],
                env=self.options.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        self._watching = asyncio.ensure_future(self._watch(self._process))

    async def _watch(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            await asyncio.sleep(0.1)
        status = f"the process of {self.description} ended with status {process.returncode}"
        self.on_lost(BrowserCrashed(status + self._last_words()))

    def _last_words(self) -> str:
        with contextlib.suppress(OSError, TypeError):
            with open(os.path.join(self._profile, "stderr.log"), errors="replace") as log:  # type: ignore[arg-type]  # noqa: PTH118, PTH123
                lines = [line.strip() for line in log.readlines()[-5:]]
            return ": " + " | ".join(lines) if lines else ""
        return ""

    async def close(self) -> None:
        if self._watching:
            self._watching.cancel()
        await asyncio.to_thread(self.kill)

    def kill(self) -> None:
        if self._process is not None:
            for how in (signal.SIGTERM, signal.SIGKILL) if sys.platform != "win32" else (signal.SIGTERM,):
                self._signal(how)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(3)
            self._process = None
        if self._profile:
            shutil.rmtree(self._profile, ignore_errors=True)
            self._profile = None

    def _signal(self, how: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, how)  # the group is the browser's own

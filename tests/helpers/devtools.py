"""A Chromium that somebody else started, with its debugging port open."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py_ort.browser import find
from py_ort.browser.options import BrowserOptions


@contextmanager
def chromium_with_devtools(profile: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start one; give the websocket of its DevTools, and its process, which is ended behind it."""
    flags = [*BrowserOptions(webgpu="software").command_line(), "--headless=new", "--remote-debugging-port=0"]
    command = [str(find.binary()), *flags, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "DevTools listening" in line)
            yield line.split()[-1], process
        finally:
            process.terminate()

"""A Playwright server on another machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from other_machines import Machine, running, wait_for_port
from playwright._impl._driver import compute_driver_executable

from py_ort.browser import find

PORT = 4444


def _browsers(folder: Path) -> Path:
    """Where `playwright install` would have put its browser, have this machine's Chromium."""
    if platform.machine() != "x86_64":
        pytest.skip("where Playwright looks for its browser is known for x86-64")
    env = {**os.environ, "PLAYWRIGHT_BROWSERS_PATH": str(folder)}
    command = [*compute_driver_executable(), "install", "--dry-run", "chromium"]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    (place,) = [line.split()[-1] for line in told.splitlines() if "Install location" in line and "headless" in line]
    shell = Path(place) / "chrome-headless-shell-linux64/chrome-headless-shell"
    shell.parent.mkdir(parents=True)
    shell.write_text(f'#!/bin/sh\nexec {find.binary()} "$@"\n')
    shell.chmod(0o755)
    return folder


@contextmanager
def playwright_server(machine: Machine, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start one; give what is `browser=` for it, and its process."""
    folder.mkdir()
    command = [*machine.inside, *compute_driver_executable(), "run-server", "--unsafe"]
    command += ["--host", machine.address, "--port", str(PORT)]
    env = {"PLAYWRIGHT_BROWSERS_PATH": str(_browsers(folder / "browsers"))}
    with running(command, folder / "log", env) as process:
        wait_for_port(machine.address, PORT, process, folder / "log")
        yield f"playwright:ws://{machine.address}:{PORT}/", process

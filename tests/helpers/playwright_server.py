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


def stand_in(folder: Path, what: str, file: str, program: object) -> dict[str, str]:
    """Put a program of this machine where `playwright install` would have put its own.

    Args:
        folder: For Playwright's programs.
        what: Playwright's name for it, such as "ffmpeg".
        file: Its file there.
        program: The program of this machine.

    Returns:
        The variables with which Playwright looks there.
    """
    if platform.machine() != "x86_64":
        pytest.skip("where Playwright looks for its programs is known for x86-64")
    env = {"PLAYWRIGHT_BROWSERS_PATH": str(folder)}
    command = [*compute_driver_executable(), "install", "--dry-run", what]
    told = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout
    places = [line.split()[-1] for line in told.splitlines() if "Install location" in line]
    (place,) = [place for place in places if Path(place).name.startswith(what.replace("-", "_"))]
    script = Path(place) / file
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
    script.chmod(0o755)
    return env


@contextmanager
def playwright_server(machine: Machine, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start one; yield its value for `browser=`, and its process."""
    folder.mkdir()
    command = [*machine.inside, *compute_driver_executable(), "run-server", "--unsafe"]
    command += ["--host", machine.address, "--port", str(PORT)]
    shell = "chrome-headless-shell-linux64/chrome-headless-shell"
    env = stand_in(folder / "browsers", "chromium-headless-shell", shell, find.binary())
    with running(command, folder / "log", env) as process:
        wait_for_port(machine.address, PORT, process, folder / "log")
        yield f"playwright:ws://{machine.address}:{PORT}/", process

"""The processes of a browser that a test started, found by a flag that no other browser has (Linux)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path


def command_lines() -> dict[int, tuple[int, str]]:
    """pid -> (parent, command line) of all processes."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(folder.name)] = (parent, (folder / "cmdline").read_text().replace("\0", " "))
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
    return found


def browser_process(flag: str) -> int:
    """Return the browser's main process."""
    lines = command_lines()
    (pid,) = [pid for pid, (_, line) in lines.items() if flag in line and "--type=" not in line]
    return pid


def children(flag: str, kind: str) -> list[int]:
    """Return the browser's processes of a kind: "renderer", "gpu-process"."""
    lines = command_lines()
    return [pid for pid in descendants(browser_process(flag), lines) if f"--type={kind}" in lines[pid][1]]


def descendants(ancestor: int, lines: dict[int, tuple[int, str]]) -> list[int]:
    """Return a process and its descendants, of `command_lines`."""

    def descends(pid: int) -> bool:
        while pid in lines and pid != ancestor:
            pid = lines[pid][0]
        return pid == ancestor

    return [pid for pid in lines if descends(pid)]


def kill(pids: Iterable[int]) -> None:
    """Kill them, like a crash."""
    assert pids, "there is no such process"
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def python(script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a separate Python, from a file: its command line must not contain the text it looks for."""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    # A file for its output: a browser that survives would hold a pipe open.
    with tempfile.TemporaryDirectory() as folder:
        file, errors = Path(folder) / "script.py", Path(folder) / "errors"
        file.write_text(script)
        with errors.open("wb") as stderr:
            done = subprocess.run(
                [sys.executable, file],
                env={**os.environ, "PYTHONPATH": paths, **env},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                timeout=300,
                check=False,
            )
        done.stderr = errors.read_text(errors="replace")
    return done


def status(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status, by name."""
    lines = (line.partition(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: value.strip() for name, _, value in lines}

"""Temporary folders, and programs that run in them: removed and ended with this process, even if it is killed.

A second process (`guard_process.py`) runs the program and removes the folder. It waits for the end of a pipe, which
the system closes with this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

_SCRIPT = Path(__file__).with_name("guard_process.py")
#: Seconds for the program to end or be killed, and for the removal of its folder.
PATIENCE = 10.0
#: On Windows, a group of its own, so that a console's Ctrl-C does not end it.
_OWN_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


class Guard:
    """A temporary folder, and at most one program.

    Args:
        prefix: The beginning of the folder's name.
        parent: Folder to create it in; by default the system's folder for temporary files.

    Attributes:
        folder: The folder, closed to other users.
    """

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the program may write
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT), str(self.folder)],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
            creationflags=_OWN_GROUP,
        )
        _guards.add(self)

    @property
    def pid(self) -> int:
        """The second process, whose child is the program."""
        return self._process.pid

    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the program, in a process group of its own.

        Args:
            arguments: The binary and its arguments.
            environment: All of its variables.
        """
        assert self._process.stdin is not None
        left = memoryview(json.dumps({"arguments": list(arguments), "environment": dict(environment)}).encode() + b"\n")
        with contextlib.suppress(OSError):  # the second process has ended, as `status` tells
            while left:
                left = left[self._process.stdin.write(left) :]

    def status(self) -> int | None:
        """Return the status that the program ended with, 128 and the number for a signal; None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """Return the last lines that the program wrote to stderr, in one line."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()[-5:]
        return " | ".join(line.strip() for line in lines)

    async def end(self) -> None:
        """End the program, remove the folder, and wait for that."""
        self.release()
        for _ in range(round(PATIENCE / 0.02)):
            if self._process.poll() is not None:
                break
            await asyncio.sleep(0.02)
        else:
            self._process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)  # the second process may have been killed
        self._errors.close()

    def release(self) -> None:
        """Make the second process end the program and remove the folder. Does not wait."""
        assert self._process.stdin is not None
        self._process.stdin.close()


_guards: weakref.WeakSet[Guard] = weakref.WeakSet()


def _let_go() -> None:
    """Close the pipes in a forked child; otherwise browsers of the parent would live as long as the child."""
    for guard in _guards:
        guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)

"""Python as another user than root, with and without permission to make user namespaces (Linux, when run as root)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
#: For a root whose own Python is in a home that other users cannot read.
SYSTEM_PYTHON = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"


class AnotherUser:
    """Runs scripts as `nobody`, with a folder for it."""

    def __init__(self, folder: Path) -> None:
        if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
            pytest.skip("only root of a Linux can run scripts as another user")
        self.folder = folder
        os.chown(folder, NOBODY, NOBODY)
        self.python = next(filter(self._can_run, (sys.executable, SYSTEM_PYTHON)), "")
        if not self.python:
            pytest.skip(f"another user can run neither {sys.executable} nor {SYSTEM_PYTHON} with what is imported here")

    def _can_run(self, python: str) -> bool:
        script = (
            "import subprocess, sys, py_ort, playwright.async_api; subprocess.run([sys.executable, '-c', 'print(7)'])"
        )
        self.python = python
        return self._run(script, []).stdout.strip() == "7"

    def run(self, script: str, *, namespaces: bool = True, **env: str) -> tuple[Any, str]:
        """Run a script; return the JSON on the last line that it prints, and its standard error.

        Args:
            script: Python.
            namespaces: True if it may make user namespaces. In a changed root (here: of the same files) no user may.
            env: Further environment variables.
        """
        if namespaces:
            done = self._run(script, [], **env)
        else:
            root = self.folder / "root"
            root.mkdir(exist_ok=True)
            enter = f'mount --rbind / {root} && exec chroot {root} "$@"'
            done = self._run(script, ["unshare", "-m", "sh", "-c", enter, "sh"], **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def _run(self, script: str, inside: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        switch = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        place = {"HOME": str(self.folder), "TMPDIR": str(self.folder), "PY_ORT_CACHE": "0"}
        paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
        return subprocess.run(
            [*inside, *switch, self.python, "-c", script],
            env={**os.environ, **place, "PYTHONPATH": paths, **env},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

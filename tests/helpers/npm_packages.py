"""Published packages of npm, kept in the user's cache. Without a registry the tests that need one are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from py_ort.bench.peer import find_dist
from py_ort.exceptions import EngineError

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "py_ort"


def npm_package(name: str, version: str) -> Path:
    """Return the folder of a package, without its dependencies."""
    folder = CACHE / f"{name.replace('/', '-')}-{version}"
    if folder.is_dir():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here to fetch " + name)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        command = [npm, "pack", "--silent", "--pack-destination", work, f"{name}@{version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot fetch {name}: {done.stderr.strip()[-300:]}")
        (archive,) = Path(work).glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(work, filter="data")
        (Path(work) / "package").rename(folder)
    return folder


def peer_dist() -> Path:
    """Return the `dist` folder of onnxruntime-web."""
    try:
        return find_dist()
    except EngineError as error:
        pytest.skip(str(error))

"""npm packages for comparisons and tests, stored in the user's cache."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from py_ort.exceptions import EngineError
from py_ort.folders import user_caches


def npm_package(name: str, version: str) -> Path:
    """Return the folder whose node_modules contains this version of a package; npm fetches it once.

    Args:
        name: npm's name of the package.
        version: The exact version.

    Raises:
        EngineError: The package is not there, and npm cannot fetch it.
    """
    folder = user_caches() / "py_ort" / f"{name.replace('/', '-')}-{version}"
    if not (folder / "node_modules" / name / "package.json").is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise EngineError(f"{name} is fetched with npm, which is not here")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", f"{name}@{version}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")
    return folder

"""A software adapter with float16 in shaders for Chromium's WebGPU, which SwiftShader lacks: lavapipe, of a newer Mesa.

    env = lavapipe.environment()                     # takes some seconds once on a machine
    BrowserOptions(webgpu="software", env=env)

`PYTHONPATH=tests/helpers python -m lavapipe` prints the variables. The system's own Mesa is not changed; Debian 12's is
too old.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "py_ort"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PACKAGE, LIBRARY = "mesa-vulkan-drivers", "as_swiftshader.so"


class Missing(Exception):
    """Lavapipe is not available on this machine; the message has the reason."""


def environment(folder: Path | None = None) -> dict[str, str]:
    """Return variables with which Chromium, started for SwiftShader, uses lavapipe instead.

    Args:
        folder: Folder to install it into, unless it is there already. Default: in the user's cache.

    Raises:
        Missing: There is no newer Mesa for this machine, or it does not load.
    """
    folder = folder or CACHE / "lavapipe"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            made = Path(work) / "made"
            _install(Path(work), made, folder)
            made.rename(folder)
    _loads(_driver(folder))
    return {"LD_PRELOAD": str(folder / LIBRARY)}


def _install(work: Path, made: Path, folder: Path) -> None:
    """Install the driver, and the files that make Chromium use it, into `made`, which will be `folder`."""
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise Missing("there is no apt-get here, by which a newer Mesa comes")
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang", "clang-19")), None)
    if not compiler:
        raise Missing("there is no C compiler here")
    _run(["dpkg", "-x", str(_download(work / "apt")), str(made)])
    driver = folder / _driver(made).relative_to(made)
    _loads(_driver(made))
    define, source, library = f'-DDRIVER="{driver}"', HERE / "as_swiftshader.c", made / LIBRARY
    _run([compiler, "-O1", "-Wall", "-shared", "-fPIC", define, "-o", str(library), str(source), "-ldl"])


def _download(apt: Path) -> Path:
    """Return the package of the system's backports, from the server of its other packages.

    Lists and caches are in a folder of our own, so that this needs no root, and installs nothing.
    """
    release = dict(
        line.replace('"', "").split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    suite = f"{release.get('VERSION_CODENAME', '')}-backports"
    found = _run(["apt-get", "indextargets", "--format", "$(SITE)", "Identifier: Packages"])
    server = next((line.strip() for line in found.splitlines() if "security" not in line), "")
    if not server:
        raise Missing("apt-get names no server of packages")
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True)
    signed = f"[signed-by={KEYS}] " if KEYS.is_file() else ""
    (apt / "sources.list").write_text(f"deb {signed}{server} {suite} main\n")
    options = {
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": apt / "lists",
        "Dir::Cache": apt / "cache",
        "APT::Sandbox::User": "root",  # only this user can read the folder
    }
    given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    _run(["apt-get", "-qq", *given, "update"])
    _run(["apt-get", "-qq", *given, "download", PACKAGE], apt)
    return next(apt.glob(f"{PACKAGE}_*.deb"))


def _driver(folder: Path) -> Path:
    found = next(folder.glob("usr/lib/*/libvulkan_lvp.so"), None)
    if not found:
        raise Missing(f"there is no lavapipe in {PACKAGE}")
    return found


def _loads(driver: Path) -> None:
    try:
        ctypes.CDLL(str(driver))
    except OSError as e:
        raise Missing(f"lavapipe does not load: {e}") from None


def _run(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, timeout=120)
    if done.returncode:
        raise Missing(f"{' '.join(command[:2])} failed: {done.stderr.strip()[-300:]}")
    return done.stdout

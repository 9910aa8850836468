"""The browsers installed on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path

from py_ort.exceptions import BrowserNotFound
from py_ort.folders import user_caches

#: macOS' folders of applications: shared, and the user's own.
_APPLICATIONS = ("/Applications", "~/Applications")
_VARIABLE = re.compile("%([^%]+)%")
_NUMBERS = re.compile(r"\d+(\.\d+){3}")
_SNAP = re.compile(rb"/snap/bin/([\w-]+)")


@dataclass(frozen=True)
class Family:
    """Browsers that are started in the same way.

    Attributes:
        commands: Names of commands to find on PATH, in this order.
        places: Patterns of absolute paths by platform, tried after the commands; with variables as %NAME%.
        package: A Python package that contains the browser: `places` are relative to the package's folder.
        playwright: Patterns of files that `playwright install` puts below its cache folder.
        install: Advice for installation.
    """

    commands: tuple[str, ...]
    install: str
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    package: str = ""
    playwright: tuple[str, ...] = ()


FAMILIES = {
    "chromium": Family(
        commands=(
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
            "chrome",
            "microsoft-edge",
            "msedge",
        ),
        places={
            "darwin": tuple(
                f"{root}/{name}.app/Contents/MacOS/{name}"
                for name in ("Chromium", "Google Chrome", "Microsoft Edge")
                for root in _APPLICATIONS
            ),
            "win32": (
                "%PROGRAMFILES%/Google/Chrome/Application/chrome.exe",
                "%PROGRAMFILES(X86)%/Google/Chrome/Application/chrome.exe",
                "%LOCALAPPDATA%/Google/Chrome/Application/chrome.exe",
                "%LOCALAPPDATA%/Chromium/Application/chrome.exe",
                "%PROGRAMFILES(X86)%/Microsoft/Edge/Application/msedge.exe",
                "%PROGRAMFILES%/Microsoft/Edge/Application/msedge.exe",
            ),
            "linux": ("/snap/bin/chromium", "/opt/google/chrome/chrome"),
        },
        playwright=(
            "chromium-*/chrome-linux*/chrome",
            "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
            "chromium-*/chrome-win*/chrome.exe",
        ),
        install="Debian: apt-get install chromium; anywhere: playwright install chromium",
    ),
    "firefox": Family(
        commands=("firefox", "firefox-esr", "firefox-nightly"),
        places={
            "darwin": tuple(f"{root}/Firefox.app/Contents/MacOS/firefox" for root in _APPLICATIONS),
            "win32": (
                "%PROGRAMFILES%/Mozilla Firefox/firefox.exe",
                "%PROGRAMFILES(X86)%/Mozilla Firefox/firefox.exe",
                "%LOCALAPPDATA%/Mozilla Firefox/firefox.exe",
            ),
            "linux": ("/snap/bin/firefox", "/usr/lib/firefox*/firefox", "/opt/firefox/firefox"),
        },
        install="Debian: apt-get install firefox-esr",
    ),
    "webkit": Family(
        commands=("MiniBrowser",),
        places={
            "linux": (
                "/usr/lib/*/webkitgtk-6.0/MiniBrowser",
                "/usr/lib/*/webkit2gtk-4.1/MiniBrowser",
                "/usr/libexec/webkit*/MiniBrowser",
            )
        },
        install="Debian: apt-get install webkit2gtk-driver, and xvfb where there is no display",
    ),
    "qtwebengine": Family(
        commands=(),
        package="PySide6",
        places={
            "linux": ("Qt/libexec/QtWebEngineProcess",),
            "darwin": ("Qt/lib/QtWebEngineCore.framework/**/MacOS/QtWebEngineProcess",),
            "win32": ("QtWebEngineProcess.exe",),
        },
        install="pip install PySide6",
    ),
}


def installed(family: str = "chromium") -> list[Path]:
    """Return the installed browsers of a family, best first."""
    one = FAMILIES[family]
    found = [Path(path) for command in one.commands if (path := shutil.which(command))]
    for pattern in one.places.get(sys.platform, ()):
        if one.package:
            found += [path for folder in _folders(one.package) for path in sorted(folder.glob(pattern))]
            continue
        place = Path(_VARIABLE.sub(lambda found: os.environ.get(found[1], ""), pattern)).expanduser()
        if not place.is_absolute():
            continue  # a variable is not set
        found += sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))), reverse=True)
    for pattern in one.playwright:
        found += sorted(_playwright_cache().glob(pattern), reverse=True)
    return list(dict.fromkeys(path for path in found if path.is_file()))


def family(wanted: str) -> str:
    """Return the family of `browser=`: a family's name, or a path, by the name of its file."""
    if wanted in FAMILIES:
        return wanted
    name = Path(wanted).name.lower()
    parts = {"firefox": "firefox", "minibrowser": "webkit", "qtwebengineprocess": "qtwebengine"}
    return next((family for part, family in parts.items() if part in name), "chromium")


def binary(wanted: str = "chromium") -> Path:
    """Return the binary for a family's name (for "chromium", variable CHROMIUM goes first) or for a path.

    Raises:
        BrowserNotFound: There is no such browser; the message lists the places searched.
    """
    if wanted not in FAMILIES:
        path = shutil.which(wanted)
        if path is None:
            raise BrowserNotFound(
                f"there is no browser at {wanted!r}: give browser= the path of a browser's binary, "
                f"{', '.join(map(repr, FAMILIES))}, 'cdp:URL', 'playwright:WSURL', 'webdriver:URL' or 'capture' "
                "(`py-ort browsers` lists what is installed)"
            )
        return Path(path)
    if (named := os.environ.get("CHROMIUM")) and wanted == "chromium":
        if path := shutil.which(named):
            return Path(path)
        raise BrowserNotFound(f"variable CHROMIUM names {named!r}, which is not a program")
    for found in installed(wanted):
        return found
    one = FAMILIES[wanted]
    where = f"on PATH ({', '.join(one.commands)}) and in the usual places"
    if one.playwright:
        where += ", Playwright's cache among them"
    if one.package:
        raise BrowserNotFound(
            f"no {wanted} found: {one.package} of this Python ({sys.executable}) has none: {one.install}"
        )
    raise BrowserNotFound(
        f"no {wanted} found: looked {where}. Install one ({one.install}), "
        f"or name it: browser='/path/to/{one.commands[0]}' or variable PY_ORT_BROWSER"
    )


def version(path: Path, env: Mapping[str, str] | None = None) -> str:
    """Return the browser's name and version, as "Chromium 156.0.1"; "" if unknown (WebKit needs a display to answer).

    On Windows the version is that of the browser's folder, because Chrome answers by opening a window.
    """
    if family(str(path)) == "qtwebengine":  # its process does not answer without a view
        with contextlib.suppress(PackageNotFoundError):
            return f"QtWebEngine {package_version('PySide6-Essentials')}"
        return ""
    if sys.platform == "win32":
        return _version_in(path.parent)
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False, env=env and dict(env)
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return next((line.strip() for line in done.stdout.splitlines() if any(c.isdigit() for c in line)), "")


def _version_in(folder: Path) -> str:
    """Return the version in a browser's folder: Chrome has a subfolder of that name, Firefox a file."""
    with contextlib.suppress(OSError):
        settings = (folder / "application.ini").read_text("utf-8", "replace")
        if found := re.search(r"^Name=(.+)\n(?:.*\n)*?Version=(.+)", settings, re.MULTILINE):
            return f"{found[1]} {found[2]}"
    versions = [each.name for each in folder.glob("*.*.*.*") if each.is_dir() and _NUMBERS.fullmatch(each.name)]
    return max(versions, key=lambda version: [int(part) for part in version.split(".")], default="")


def readable_folder(path: Path) -> Path | None:
    """Return the folder for files that a browser must read, if it cannot read the usual temporary files.

    A snap has its own /tmp; the result is the snap's folder in the user's home.
    """
    name = path.name if path.resolve().name == "snap" else None
    with contextlib.suppress(OSError), path.open("rb") as file:
        # Ubuntu's commands outside /snap are scripts that start the snap.
        if (script := file.read(4096)).startswith(b"#!") and (found := _SNAP.search(script)):
            name = found[1].decode()
    folder = Path.home() / "snap" / (name or "") / "common"
    return folder if name and folder.is_dir() else None


def _folders(package: str) -> list[Path]:
    """Return the folders of a Python package, without importing it."""
    spec = importlib.util.find_spec(package)
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def _playwright_cache() -> Path:
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    return Path(named) if named else user_caches() / "ms-playwright"

"""Where browsers are on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from py_ort.exceptions import BrowserNotFound

#: Looked for on PATH, in this order.
COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
)
#: Looked for after them.
PLACES = {
    "darwin": (
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
    "linux": ("/snap/bin/chromium", "/opt/google/chrome/chrome"),
}
#: Where `playwright install chromium` puts its own, below the cache folder.
PLAYWRIGHT_GLOBS = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)


def installed() -> list[Path]:
    """Return the Chromium-like browsers found, best first."""
    found = [Path(path) for command in COMMANDS if (path := shutil.which(command))]
    found += [place for text in PLACES.get(sys.platform, ()) if (place := Path(text)).is_file()]
    for pattern in PLAYWRIGHT_GLOBS:
        found += sorted(_playwright_cache().glob(pattern), reverse=True)
    return list(dict.fromkeys(found))


def chromium(wanted: str = "chromium") -> Path:
    """Return the binary for `browser="chromium"` (variable CHROMIUM goes first) or for a path.

    Raises:
        BrowserNotFound: There is none; says where was looked.
    """
    if wanted != "chromium":
        path = shutil.which(wanted)
        if path is None:
            raise BrowserNotFound(
                f"there is no browser at {wanted!r}: give browser= the path of a Chromium-like binary, 'chromium', "
                "'cdp:URL', 'playwright:WSURL' or 'capture' (`py-ort browsers` lists what is installed)"
            )
        return Path(path)
    if binary := os.environ.get("CHROMIUM"):
        if path := shutil.which(binary):
            return Path(path)
        raise BrowserNotFound(f"variable CHROMIUM names {binary!r}, which is not a program")
    for found in installed():
        return found
    raise BrowserNotFound(
        f"no Chromium found: looked for {', '.join(COMMANDS)} on PATH, in the usual places and in Playwright's cache. "
        "Install one (Debian: apt-get install chromium; anywhere: playwright install chromium), "
        "or name it: browser='/path/to/chrome', variable PY_ORT_BROWSER or CHROMIUM"
    )


def version(binary: Path) -> str:
    """Return what the browser says of itself, e.g. "Chromium 156.0.1"; "" if it does not."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return next((line.strip() for line in done.stdout.splitlines() if any(c.isdigit() for c in line)), "")


def _playwright_cache() -> Path:
    if path := os.environ.get("PLAYWRIGHT_BROWSERS_PATH"):
        return Path(path)
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/ms-playwright"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "")) / "ms-playwright"
    return Path.home() / ".cache/ms-playwright"

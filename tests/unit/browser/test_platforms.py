"""Differences of other systems, as far as a machine of one system can tell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from py_ort import BrowserOptions
from py_ort.browser import find, guard_process
from py_ort.browser.launchers.firefox import FirefoxLauncher
from py_ort.folders import user_caches


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty home, and no variable that names another folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "PROGRAMFILES", "PLAYWRIGHT_BROWSERS_PATH", "CHROMIUM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _file(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("system", "folder"), [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "local"), ("other", ".cache")]
)
def test_caches_lie_where_the_system_has_them(
    monkeypatch: pytest.MonkeyPatch, home: Path, system: str, folder: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv("LOCALAPPDATA", str(home / "local"))
    assert user_caches() == home / folder
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "named"))
    assert user_caches() == home / "named"


@pytest.mark.parametrize(
    ("system", "family", "path"),
    [
        ("win32", "chromium", "local/Google/Chrome/Application/chrome.exe"),
        ("win32", "chromium", "programs/Microsoft/Edge/Application/msedge.exe"),
        ("win32", "firefox", "programs/Mozilla Firefox/firefox.exe"),
        ("win32", "chromium", "local/ms-playwright/chromium-1/chrome-win/chrome.exe"),
        ("darwin", "chromium", "Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
        ("darwin", "firefox", "Applications/Firefox.app/Contents/MacOS/firefox"),
        ("darwin", "chromium", "Library/Caches/ms-playwright/chromium-1/chrome-mac/C.app/Contents/MacOS/Chromium"),
    ],
)
def test_browsers_are_found_in_the_systems_places(
    monkeypatch: pytest.MonkeyPatch, home: Path, system: str, family: str, path: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv("LOCALAPPDATA", str(home / "local"))
    monkeypatch.setenv("PROGRAMFILES", str(home / "programs"))
    assert find.installed(family) == []
    there = _file(home / path)
    assert find.installed(family) == [there]
    assert find.installed("webkit") == []


@pytest.mark.parametrize(
    ("system", "path"),
    [
        ("linux", "Qt/libexec/QtWebEngineProcess"),
        ("darwin", "Qt/lib/QtWebEngineCore.framework/Helpers/Q.app/Contents/MacOS/QtWebEngineProcess"),
        ("win32", "QtWebEngineProcess.exe"),
    ],
)
def test_qtwebengine_is_found_in_pyside(monkeypatch: pytest.MonkeyPatch, home: Path, system: str, path: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    _file(home / "PySide6/__init__.py", "raise ImportError('nothing is imported for this')")
    monkeypatch.syspath_prepend(home)
    assert find.installed("qtwebengine") == []
    there = _file(home / "PySide6" / path)
    assert find.installed("qtwebengine") == [there] and find.family(str(there)) == "qtwebengine"


def test_a_variable_that_is_not_there_names_no_place(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.chdir(home)
    _file(home / "Google/Chrome/Application/chrome.exe")
    assert find.installed() == []


def test_on_windows_no_browser_is_started_for_its_version(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Chrome answers --version by opening a window there."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a browser was started"))
    chrome, firefox = _file(home / "c/chrome.exe"), _file(home / "f/firefox.exe")
    assert find.version(chrome) == "" and find.version(firefox) == ""
    for name in ("99.0.4844.51", "156.0.8078.79", "156.0.8078.7", "SetupMetrics"):
        (chrome.parent / name).mkdir()
    _file(firefox.parent / "application.ini", "[App]\nVendor=Mozilla\nName=Firefox\nVersion=153.7.0\nBuildID=1\n")
    assert (find.version(chrome), find.version(firefox)) == ("156.0.8078.79", "Firefox 153.7.0")


@pytest.mark.parametrize(("system", "stays"), [("linux", False), ("darwin", False), ("win32", True)])
def test_firefox_does_not_leave_its_launcher_on_windows(
    monkeypatch: pytest.MonkeyPatch, home: Path, system: str, stays: bool
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    browser = _file(home / "firefox.exe")
    browser.chmod(0o755)
    launcher = FirefoxLauncher(BrowserOptions(browser=str(browser)), lambda _: None)
    assert ("--wait-for-browser" in launcher.command("http://localhost", home).arguments) == stays


def test_on_windows_a_browser_ends_with_what_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    asked = []

    def taskkill(command: list[str], **_: object) -> None:
        asked.append(command)
        started.kill()

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(subprocess, "run", taskkill)
    guard_process.end(started)
    assert asked == [["taskkill", "/T", "/F", "/PID", str(started.pid)]]
    assert started.returncode is not None

"""The choice of flags and binaries."""

import os
import sys

import pytest

from py_ort.browser import browser_options as options
from py_ort.browser import find, sandbox
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.launchers import webkit
from py_ort.exceptions import BrowserCrashed, BrowserNotFound, InvalidArgument

VARIABLES = (
    "PY_ORT_BROWSER",
    "PY_ORT_LAUNCHER",
    "PY_ORT_WEBGPU",
    "PY_ORT_SANDBOX",
    "CHROMIUM",
    "CHROMIUM_FLAGS",
    "CHROMIUM_LD",
)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


CASES = [(False, "auto", True), (True, "auto", False), (True, "software", True), (False, "hardware", False)]


@pytest.mark.parametrize("gpu, webgpu, software", [*CASES, (False, "off", False)])
def test_webgpu_flags(monkeypatch, gpu, webgpu, software):
    monkeypatch.setattr(options, "has_gpu", lambda: gpu)
    line = BrowserOptions(webgpu=webgpu).command_line()
    assert ("--use-webgpu-adapter=swiftshader" in line) == software
    assert ("--enable-unsafe-webgpu" in line) == (webgpu != "off")


@pytest.mark.skipif(sys.platform != "linux", reason="a rule of Linux")
def test_no_sandbox_for_root_only(monkeypatch, caplog):
    monkeypatch.setattr(sandbox, "_warned", set())
    for uid, expected in ((0, True), (1000, False), (0, True)):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        assert ("--no-sandbox" in BrowserOptions().command_line()) == expected
    (said,) = caplog.messages
    assert "root" in said and "another user" in said and "PY_ORT_SANDBOX=0" in said


@pytest.mark.parametrize("uid", [0, 1000])
def test_the_sandbox_as_wanted(monkeypatch, caplog, uid):
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(sandbox, "_warned", set())
    assert "--no-sandbox" in BrowserOptions(sandbox=False).command_line()
    assert "--no-sandbox" not in BrowserOptions(sandbox=True).command_line()
    for value, off in (("0", True), ("1", False)):
        monkeypatch.setenv("PY_ORT_SANDBOX", value)
        assert ("--no-sandbox" in BrowserOptions().command_line()) == off
        # Flags that replace ours leave the sandbox alone, unless they say so.
        monkeypatch.setenv("CHROMIUM_FLAGS", "--mine")
        assert ("--no-sandbox" in BrowserOptions().command_line()) == off
        monkeypatch.setenv("CHROMIUM_FLAGS", "--mine --no-sandbox")
        assert BrowserOptions().command_line() == ["--mine", "--no-sandbox"]
        monkeypatch.delenv("CHROMIUM_FLAGS")
    assert not caplog.messages
    monkeypatch.setenv("PY_ORT_SANDBOX", "yes")
    with pytest.raises(InvalidArgument, match="PY_ORT_SANDBOX"):
        BrowserOptions()


SWITCHES = [
    ("kernel/unprivileged_userns_clone", "0"),
    ("user/max_user_namespaces", "0"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1"),
]


@pytest.mark.parametrize("switch, value", SWITCHES)
def test_what_forbids_the_sandbox_is_named(monkeypatch, caplog, tmp_path, switch, value):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sandbox, "_warned", set())
    monkeypatch.setattr(sandbox, "_refused", {})
    monkeypatch.setattr(sandbox, "SYSCTL", tmp_path)
    (tmp_path / switch).parent.mkdir()
    (tmp_path / switch).write_text(value + "\n")
    assert not sandbox.refused("chromium", BrowserCrashed("the process ended: Segmentation fault"))
    assert not sandbox.off("chromium", None)
    assert sandbox.refused("chromium", BrowserCrashed("the process ended: No usable sandbox! If …"))
    assert sandbox.off("chromium", None) and sandbox.off("chromium", None) and not sandbox.off("other", None)
    (said,) = caplog.messages
    assert f"{switch.replace('/', '.')} is {value}" in said


def test_variables(monkeypatch):
    monkeypatch.setenv("CHROMIUM_FLAGS", "--only 'this one'")
    monkeypatch.setenv("CHROMIUM_LD", "/some/lib")
    monkeypatch.setenv("PY_ORT_LAUNCHER", "process")
    chosen = BrowserOptions(flags="--and-this --that", env={"A": "b"}, sandbox=True)
    assert chosen.command_line() == ["--only", "this one", "--and-this", "--that"]
    assert chosen.environment()["LD_LIBRARY_PATH"] == "/some/lib" and chosen.environment()["A"] == "b"
    assert chosen.launcher == "process"


def test_equal_options_are_one_browser():
    assert hash(BrowserOptions(env={"A": "1", "B": "2"})) == hash(BrowserOptions(env={"B": "2", "A": "1"}))
    assert BrowserOptions(flags=("--x",)) != BrowserOptions()


@pytest.mark.parametrize("wrong", [{"launcher": "karma"}, {"webgpu": "yes"}])
def test_wrong_options(wrong):
    with pytest.raises(InvalidArgument, match="is one of"):
        BrowserOptions(**wrong)


def test_no_browser(monkeypatch):
    monkeypatch.setattr(find, "installed", lambda family: [])
    with pytest.raises(BrowserNotFound, match="apt-get install chromium"):
        find.binary()
    with pytest.raises(BrowserNotFound, match="/no/such/browser"):
        find.binary("/no/such/browser")
    monkeypatch.setenv("CHROMIUM", "/nor/this")
    with pytest.raises(BrowserNotFound, match="/nor/this"):
        find.binary()


def test_the_variable_goes_first(monkeypatch):
    monkeypatch.setenv("CHROMIUM", sys.executable)
    assert str(find.binary()) == sys.executable


@pytest.mark.parametrize("kind", ["link", "script", "none", "a snap that is not there"])
def test_snaps_read_files_in_their_own_folder_only(monkeypatch, tmp_path, kind):
    monkeypatch.setattr(find.Path, "home", lambda: tmp_path)
    common, command = tmp_path / "snap" / "chromium" / "common", tmp_path / "bin" / "chromium"
    command.parent.mkdir()
    if kind != "a snap that is not there":
        common.mkdir(parents=True)
    if kind == "link":
        (command.parent / "snap").write_bytes(b"\x7fELF")
        command.symlink_to("snap")
    else:
        command.write_text(
            "#!/bin/sh\nexec " + ("/usr/lib/chromium" if kind == "none" else "/snap/bin/chromium") + ' "$@"\n'
        )
    assert find.readable_folder(command) == (common if kind in ("link", "script") else None)


@pytest.mark.parametrize("missing", ["", "bwrap", "xdg-dbus-proxy"])
def test_webkit_has_a_sandbox_where_its_tools_are(monkeypatch, caplog, tmp_path, missing):
    binary = tmp_path / "webkit2gtk-4.1" / "MiniBrowser"
    binary.parent.mkdir()
    binary.touch()
    monkeypatch.setattr(sandbox, "_warned", set())
    monkeypatch.setattr(sandbox, "_refused", {})
    monkeypatch.setattr(webkit.shutil, "which", lambda tool: None if tool == missing else f"/usr/bin/{tool}")

    def flags(**options: bool) -> list[str]:
        chosen = BrowserOptions(browser="webkit", **options)
        return webkit.WebKitLauncher(chosen, lambda error: None)._sandbox(binary)

    assert flags(sandbox=True) == ["--enable-sandbox"] and flags(sandbox=False) == []
    assert not caplog.messages
    assert flags() == ([] if missing else ["--enable-sandbox"])
    assert all(missing in said and "apt-get install" in said for said in caplog.messages)
    assert len(caplog.messages) == bool(missing)
    if not missing:
        assert sandbox.refused("webkit", BrowserCrashed("it ended: bwrap: No permissions to create new namespace"))
        assert flags() == [] and "user namespaces" in caplog.text and "setuid helper" not in caplog.text


def test_what_helps_where_a_gpu_is_asked_for():
    """No driver for the CPU counts."""
    for browser in ("chromium", "firefox"):
        assert (
            BrowserOptions(browser=browser, webgpu="hardware")
            .no_adapter_hint("webgpu")
            .startswith("a GPU and its driver")
        )
    assert "mesa" in BrowserOptions(browser="firefox", webgpu="auto").no_adapter_hint("webgpu")

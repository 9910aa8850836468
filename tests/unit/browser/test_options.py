"""Which flags and binaries are chosen."""

import os
import sys

import pytest

from py_ort.browser import find, options
from py_ort.browser.options import SOFTWARE_WEBGPU, BrowserOptions
from py_ort.exceptions import BrowserNotFound, InvalidArgument

VARIABLES = ("PY_ORT_BROWSER", "PY_ORT_LAUNCHER", "PY_ORT_WEBGPU", "CHROMIUM", "CHROMIUM_FLAGS", "CHROMIUM_LD")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


CASES = [(False, "auto", True), (True, "auto", False), (True, "software", True), (False, "hardware", False)]


@pytest.mark.parametrize("gpu, webgpu, software", [*CASES, (False, "off", False)])
def test_webgpu_flags(monkeypatch, gpu, webgpu, software):
    monkeypatch.setattr(options, "has_gpu", lambda: gpu)
    line = BrowserOptions(webgpu=webgpu).command_line()
    assert (SOFTWARE_WEBGPU[1] in line) == software
    assert ("--enable-unsafe-webgpu" in line) == (webgpu != "off")


@pytest.mark.skipif(sys.platform != "linux", reason="a rule of Linux")
def test_no_sandbox_for_root_only(monkeypatch):
    for uid, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        assert ("--no-sandbox" in BrowserOptions().command_line()) == expected


def test_variables(monkeypatch):
    monkeypatch.setenv("CHROMIUM_FLAGS", "--only 'this one'")
    monkeypatch.setenv("CHROMIUM_LD", "/some/lib")
    monkeypatch.setenv("PY_ORT_LAUNCHER", "process")
    chosen = BrowserOptions(flags="--and-this --that", env={"A": "b"})
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

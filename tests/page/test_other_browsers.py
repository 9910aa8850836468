"""Firefox, WebKitGTK and QtWebEngine, where they are installed (`make browsers` installs them)."""

import shutil
import socket
import struct
import textwrap
from pathlib import Path

import numpy as np
import processes
import pytest
import small_models
from installed_browsers import need_browser
from waiting import wait_until

from py_ort import BrowserOptions, InferenceSession, OrtValue
from py_ort.browser import sandbox
from py_ort.exceptions import BrowserCrashed, NoAdapter, PyOrtError

X = np.arange(3, dtype=np.float32).reshape(1, 3)
FEEDS = {"x": X, "scale": np.full(3, 2, np.float32)}
MARKS = {"firefox": "Firefox", "webkit": "WebKit", "qtwebengine": "QtWebEngine"}


@pytest.fixture(scope="module", params=MARKS)
def other(request):
    return BrowserOptions(browser=need_browser(request.param))


def test_wasm(other):
    with InferenceSession(small_models.add(), providers=["wasm"], browser=other) as session:
        assert session.get_providers() == ["CPUExecutionProvider"]
        for scale in (2, 3):
            feeds = {**FEEDS, "scale": np.full(3, scale, np.float32)}
            np.testing.assert_array_equal(session.run(None, feeds)[0], X + scale)
        assert MARKS[other.browser] in repr(session)


def test_large_tensors(other):
    feeds = {"x": np.random.default_rng(0).random((1024, 1024), dtype=np.float32)}
    with InferenceSession(small_models.slow(steps=1), providers=["wasm"], browser=other) as session:
        (product,) = session.run(None, feeds)
    assert product.shape == (1024, 1024) and np.isfinite(product).all()


def test_webgpu_in_firefox():
    firefox = BrowserOptions(browser=need_browser("firefox", webgpu=True))
    with InferenceSession(small_models.add(), providers=["webgpu"], browser=firefox) as session:
        assert session.adapter and session.placement().counts()["webgpu"] == 1
        for _ in range(2):
            np.testing.assert_array_equal(session.run(None, FEEDS)[0], X + 2)


def test_webgl(other, monkeypatch):
    """In WebKit the sessions share a runtime in the page's own thread, and values are there, too."""
    if other.browser == "qtwebengine":
        pytest.skip("its WebGL was not tried")
    monkeypatch.setenv("PY_ORT_BROWSER", other.browser)
    value = OrtValue.ortvalue_from_numpy(X, "webgl")
    sessions = [InferenceSession(small_models.add(), providers=["webgl"], browser=other) for _ in range(2)]
    with sessions[0], sessions[1], InferenceSession(small_models.add(), providers=["wasm"], browser=other) as plain:
        for session in sessions:
            assert session.placement().counts()["webgl"] == 1
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_cpu_input("scale", FEEDS["scale"])
            binding.bind_output("y", "webgl")
            session.run_with_iobinding(binding)
            (value,) = binding.get_outputs()
        np.testing.assert_array_equal(value.numpy(), X + 4)
        np.testing.assert_array_equal(plain.run(None, FEEDS)[0], X + 2)


def test_where_there_is_no_webgpu(other):
    """WebKitGTK and QtWebEngine have none, Firefox none without a driver: an error with the advice for that browser."""
    options = BrowserOptions(browser=other.browser, env={"VK_DRIVER_FILES": "/none", "VK_ICD_FILENAMES": "/none"})
    with pytest.raises(NoAdapter, match="What helps") as caught:
        InferenceSession(small_models.add(), providers=["webgpu"], browser=options)
    assert "swiftshader" not in str(caught.value)
    helps = {"firefox": "mesa-vulkan-drivers", "webkit": "another browser", "qtwebengine": "another browser"}
    assert helps[other.browser] in str(caught.value)


def program_of(session: InferenceSession) -> int:
    """Return the process of a session's browser."""
    guard = session._opened.runtime.lease.launcher._guard.pid
    (program,) = [pid for pid, (parent, _) in processes.command_lines().items() if parent == guard]
    return program


def run_until_it_fails(session: InferenceSession) -> None:
    """A killed process may answer for a moment."""
    wait_until(lambda: session.run(None, FEEDS) is None)


def test_a_browser_that_is_killed(other):
    options = BrowserOptions(browser=other.browser, env={"PY_ORT_TEST": "killed"}, idle_timeout=0)
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as session:
        processes.kill([program_of(session)])
        with pytest.raises(PyOrtError, match="new InferenceSession"):
            run_until_it_fails(session)


KILLED = """
    import os, signal
    import small_models
    import py_ort

    browser = py_ort.BrowserOptions(browser={browser!r}, sandbox=False)
    session = py_ort.InferenceSession(small_models.add(), providers=["wasm"], browser=browser)
    launcher = session._opened.runtime.lease.launcher
    print(launcher._guard.pid, launcher._guard.folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_python_is_killed(other):
    """Its browser ends with it (Linux)."""
    printed = processes.python(textwrap.dedent(KILLED).format(browser=other.browser)).stdout
    pid, profile = printed.split()

    def ended() -> bool:
        lines = processes.command_lines()
        return int(pid) not in lines and not any(profile in line for _, line in lines.values())

    wait_until(ended)
    if other.browser == "qtwebengine":
        assert not Path(profile).exists()
    shutil.rmtree(profile, ignore_errors=True)


def test_a_page_of_qt_that_crashes(other):
    if other.browser != "qtwebengine":
        pytest.skip("of other browsers only the connection tells")
    options = BrowserOptions(browser=other.browser, env={"PY_ORT_TEST": "crashed"})
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as session:
        processes.kill(_renderers(session, "--type=zygote"))
        with pytest.raises(BrowserCrashed, match=r"status 1.*the page crashed"):
            run_until_it_fails(session)


def test_the_virtual_display_is_ours_alone(other, monkeypatch):
    """Who could open it could type into the browser."""
    if other.browser == "qtwebengine" or not shutil.which("Xvfb"):
        pytest.skip("QtWebEngine has none, nor has any browser without Xvfb")
    monkeypatch.delenv("DISPLAY", raising=False)
    options = BrowserOptions(browser=other.browser, env={"PY_ORT_TEST": "display"})
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as session:
        pid = program_of(session)
        environment = dict(
            line.split("=", 1) for line in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in line
        )
        cookie = Path(environment["XAUTHORITY"]).read_bytes()[-16:]
        for name, data, expected in (
            (b"", b"", 0),
            (b"MIT-MAGIC-COOKIE-1", b"x" * 16, 0),
            (b"MIT-MAGIC-COOKIE-1", cookie, 1),
        ):
            with socket.socket(socket.AF_UNIX) as display:
                display.connect(f"/tmp/.X11-unix/X{environment['DISPLAY'].removeprefix(':')}")
                # In one piece: a display that refuses the first of two does not read the second.
                hello = struct.pack("<BxHHHHxx", ord("l"), 11, 0, len(name), len(data))
                display.sendall(hello + name + bytes(-len(name) % 4) + data)
                assert display.recv(1)[0] == expected


def _renderers(session, kind):
    """Return the processes of the session's browser with this in their command lines; for zygotes, their children."""
    lines = processes.command_lines()
    ours = processes.descendants(program_of(session), lines)
    found = {pid for pid in ours if kind in f"{lines[pid][1]} " and "bwrap" not in lines[pid][1]}
    return [pid for pid in found if "zygote" not in kind or lines[pid][0] in found]


def test_the_renderers_are_in_a_sandbox(other, caplog):
    if other.browser == "qtwebengine" and sandbox.root():
        pytest.skip("QtWebEngine has no sandbox for root")
    if other.browser == "webkit" and not (shutil.which("bwrap") and shutil.which("xdg-dbus-proxy")):
        pytest.skip("bubblewrap or xdg-dbus-proxy is not installed")
    with InferenceSession(small_models.add(), providers=["wasm"], browser=other) as session:
        kind = {"firefox": " tab", "webkit": "/WebKitWebProcess ", "qtwebengine": "--type=zygote"}[other.browser]
        renderers = _renderers(session, kind)
        assert renderers and {processes.status(pid)["Seccomp"] for pid in renderers} == {"2"}
    assert "sandbox" not in caplog.text

"""Missing browsers, and browsers and pages that die: typed errors, soon, and the next session works."""

import sys
import threading
import time
import uuid

import numpy as np
import processes
import pytest
import small_models

from py_ort import BrowserOptions, InferenceSession, RunOptions
from py_ort.browser import find
from py_ort.browser.bridge import Bridge
from py_ort.exceptions import (
    BrowserCrashed,
    BrowserError,
    BrowserNotFound,
    Cancelled,
    ConnectionLost,
    DeviceLost,
    InvalidArgument,
    PageCrashed,
    Timeout,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
FEEDS = {"x": np.eye(1024, dtype=np.float32)}


@pytest.fixture
def own_browser():
    """Options of a browser that no other test uses, and the flag by which its process can be found."""

    def own_browser(launcher: str) -> tuple[BrowserOptions, str]:
        flag = f"--py-ort-test={uuid.uuid4().hex}"
        return BrowserOptions(launcher=launcher, webgpu="software", flags=(flag,), idle_timeout=0.1), flag

    return own_browser


def run_and(session: InferenceSession, action) -> tuple[BaseException, float]:
    """Start a run that takes seconds, and act in the middle of it; return the run's error, and its time after that."""
    caught: list[BaseException] = []

    def target() -> None:
        try:
            session.run(None, FEEDS)
        except BaseException as e:
            caught.append(e)

    thread = threading.Thread(target=target)
    thread.start()
    time.sleep(0.8)
    assert thread.is_alive(), "the run was over before anything could happen to it"
    began = time.perf_counter()
    action()
    thread.join(30)
    assert not thread.is_alive(), "the run hangs"
    assert caught, "the run ended without an error"
    return caught[0], time.perf_counter() - began


def within(seconds: float, condition) -> bool:
    """Wait for a condition, up to this time; return whether it became true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@linux
@pytest.mark.parametrize(
    ("launcher", "killed"), [("playwright", "browser"), ("process", "browser"), ("process", "guard")]
)
def test_browser_killed_in_a_run(own_browser, launcher, killed):
    options, flag = own_browser(launcher)
    session = InferenceSession(small_models.slow(), providers=["wasm"], browser=options)
    browser = processes.browser_process(flag)
    pid = browser if killed == "browser" else session._opened.runtime.lease.launcher._guard.pid
    error, seconds = run_and(session, lambda: processes.kill([pid]))
    assert within(10, lambda: browser not in processes.command_lines())
    assert isinstance(error, BrowserCrashed) and "new InferenceSession" in str(error)
    assert seconds < 5
    with pytest.raises(BrowserCrashed, match="new InferenceSession"):
        session.run(None, FEEDS)
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as fresh:
        fresh.run(None, {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)})
    session.close()


@linux
def test_browser_killed_with_several_pages(own_browser):
    """A crash reaches all who wait for any of its pages."""
    options, flag = own_browser("playwright")
    sessions = [InferenceSession(small_models.slow(), providers=["wasm"], browser=options, pages=2) for _ in range(2)]
    assert len({id(session._opened.runtime.lease.page) for session in sessions}) == 2
    other = sessions[0].run_async(None, FEEDS)
    error, seconds = run_and(sessions[1], lambda: processes.kill([processes.browser_process(flag)]))
    assert isinstance(error, BrowserCrashed) and seconds < 5
    with pytest.raises(BrowserCrashed):
        other.result(5)
    for session in sessions:
        session.close()


@linux
@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_page_killed_in_a_run(own_browser, launcher):
    options, flag = own_browser(launcher)
    session = InferenceSession(small_models.slow(), providers=["wasm"], browser=options)
    error, seconds = run_and(session, lambda: processes.kill(processes.children(flag, "renderer")))
    # Without Playwright a page's crash is not visible: its connection is closed.
    assert isinstance(error, PageCrashed if launcher == "playwright" else ConnectionLost)
    assert "new InferenceSession" in str(error)
    assert seconds < 5
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as fresh:
        fresh.run(None, {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)})
    session.close()


@linux
def test_gpu_process_killed(own_browser, page_errors):
    """The GPU device is lost: the session reports it, and the next one, in the same page, gets a new device."""
    options, flag = own_browser("playwright")
    feeds = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}
    with InferenceSession(small_models.add(), providers=["webgpu"], browser=options) as session:
        session.run(None, feeds)
        processes.kill(processes.children(flag, "gpu-process"))
        time.sleep(0.5)
        with pytest.raises(DeviceLost, match="again"):
            session.run(None, feeds)
        with InferenceSession(small_models.add(), providers=["webgpu"], browser=options) as fresh:
            assert fresh.run(None, feeds)[0].tolist() == [[1, 1, 1]]
        session.enable_fallback()
        assert session.run(None, feeds)[0].tolist() == [[1, 1, 1]], "on wasm, as onnxruntime's fallback does"
        assert session.get_providers() == ["CPUExecutionProvider"]
    assert any("lost" in line for line in page_errors)
    page_errors.clear()


@linux
def test_gpu_process_killed_until_the_browser_gives_up(own_browser, page_errors):
    """Chromium then has no adapter any more: webgpu sessions use another browser, others stay until their end."""
    options, flag = own_browser("playwright")
    feeds = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}
    staying = InferenceSession(small_models.add(), providers=["wasm"], browser=options)
    old = processes.browser_process(flag)
    lost = []
    for _ in range(5):
        session = InferenceSession(small_models.add(), providers=["webgpu"], browser=options)
        assert session.run(None, feeds)[0].tolist() == [[1, 1, 1]]
        if session._opened.runtime.lease is not staying._opened.runtime.lease:
            break
        lost.append(session)
        processes.kill(processes.children(flag, "gpu-process"))
        time.sleep(0.5)
    else:
        pytest.fail("the browser gives up only after more crashes")
    assert len(lost) >= 2
    for one in lost:
        with pytest.raises(DeviceLost, match="again"):
            one.run(None, feeds)
    assert old in processes.command_lines()
    assert staying.run(None, feeds)[0].tolist() == [[1, 1, 1]], "the old browser still serves"
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as other:
        assert other._opened.runtime.lease is session._opened.runtime.lease, "all new ones come to the new browser"
    for one in (staying, *lost):
        one.close()
    assert within(10, lambda: old not in processes.command_lines()), "the old browser ends with its last session"
    assert session.run(None, feeds)[0].tolist() == [[1, 1, 1]]
    session.close()
    page_errors.clear()


DRIVER_KILLED = """
import os, pathlib, time
import numpy as np
import processes, small_models
from py_ort import BrowserOptions, InferenceSession
from py_ort.exceptions import BrowserError

feeds = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}
least = []
for _ in range(4):
    session = InferenceSession(small_models.add(), providers=["wasm"], browser=BrowserOptions(webgpu="off"))
    print(session.run(None, feeds)[0].tolist())
    lines = processes.command_lines().items()
    processes.kill([pid for pid, (parent, line) in lines if parent == os.getpid() and "run-driver" in line])
    try:
        while True:
            session.run(None, feeds)
    except BrowserError as e:
        assert "new InferenceSession" in str(e), e
    session.close()
    # Connections of the dead browser are closed soon, not at once; behind the first one it is known how many are left.
    counts = []
    while len(counts) < 100 and not (least and counts and counts[-1] == least[0]):
        counts.append(len(list(pathlib.Path("/proc/self/fd").iterdir())))
        time.sleep(0.03)
    least.append(min(counts))
    print(least[-1])
"""


@linux
def test_playwrights_driver_killed():
    """The next session has a new one, each time, and no open file of the old ones remains."""
    done = processes.python(DRIVER_KILLED)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[::2] == ["[[1.0, 1.0, 1.0]]"] * 4
    assert len(set(lines[1::2])) == 1, lines


DRIVER_STUCK = """
import os, signal
import numpy as np
import processes, py_ort, small_models
from py_ort.browser.launchers import with_playwright

with_playwright.ANSWER_PATIENCE = 1.0
feeds = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}


def make(flag):
    where = py_ort.BrowserOptions(webgpu="off", sandbox=False, launcher="playwright", flags=(flag,), launch_timeout=30)
    return py_ort.InferenceSession(small_models.add(), providers=["wasm"], browser=where)


before = make("--py-ort-test=before")
(driver,) = [
    pid
    for pid, (parent, line) in processes.command_lines().items()
    if parent == os.getpid() and "run-driver" in line
]
os.kill(driver, signal.SIGSTOP)
try:
    for session in (before, make("--py-ort-test=after"), before):
        print(session.run(None, feeds)[0].tolist())
finally:
    os.kill(driver, signal.SIGCONT)
"""


@linux
def test_playwrights_driver_does_not_answer():
    """The next browser has a new one; those of the old one continue."""
    done = processes.python(DRIVER_STUCK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[[1.0, 1.0, 1.0]]"] * 3


@linux
@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_nothing_is_left_of_a_browser(own_browser, launcher):
    options, flag = own_browser(launcher)
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options):
        main = processes.browser_process(flag)
    assert within(10, lambda: main not in processes.command_lines()), "the browser outlives its last session"


@linux
def test_the_token_is_in_no_command_line(own_browser, monkeypatch):
    """Every user of the machine can read command lines."""
    tokens, seen = [], []
    expect = Bridge.expect_worker

    def expecting(bridge):
        port, token, future = expect(bridge)
        tokens.append(token)
        seen.append(threading.Thread(target=watch))
        seen[-1].start()
        return port, token, future

    lines, done = set(), threading.Event()

    def watch() -> None:
        while not done.is_set():
            lines.update(line for _, line in processes.command_lines().values())

    monkeypatch.setattr(Bridge, "expect_worker", expecting)
    options, flag = own_browser("process")
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as session:
        launcher = session._opened.runtime.lease.launcher
        assert launcher._guard.folder.stat().st_mode & 0o77 == 0, "nobody else may look into it"
        done.set()
        for thread in seen:
            thread.join()
    assert len(tokens) == 1, "the page's, with which its first worker's begins"
    assert any(flag in line and "start.html" in line for line in lines)
    assert not any(token in line for line in lines for token in tokens)


def test_no_browser():
    with pytest.raises(BrowserNotFound, match="/no/such/chrome"):
        InferenceSession(small_models.add(), browser="/no/such/chrome")


@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_a_program_that_is_no_browser(launcher):
    with pytest.raises(BrowserCrashed, match="true"):
        InferenceSession(small_models.add(), browser=BrowserOptions(browser="/bin/true", launcher=launcher))


@pytest.mark.parametrize("browser", ["cdp:http://127.0.0.1:9", "playwright:ws://127.0.0.1:9/"])
def test_no_browser_at_an_address(browser):
    with pytest.raises(BrowserNotFound, match=r"127\.0\.0\.1:9"):
        InferenceSession(small_models.add(), browser=browser)


def test_nobody_opens_the_url(capsys):
    with pytest.raises(Timeout, match=r"no browser was captured within 0\.5 s.*launch_timeout"):
        InferenceSession(small_models.add(), browser=BrowserOptions(browser="capture", launch_timeout=0.5))
    assert "http://127.0.0.1:" in capsys.readouterr().err


@pytest.mark.parametrize("browser", ["firefox", "webkit"])
def test_playwright_drives_chromium_only(browser):
    with pytest.raises(InvalidArgument, match="launcher='process'"):
        InferenceSession(small_models.add(), browser=browser, launcher="playwright")


@pytest.mark.parametrize(
    "browser, package",
    [("firefox", "firefox-esr"), ("webkit", "webkit2gtk-driver"), ("qtwebengine", "pip install PySide6")],
)
def test_a_browser_that_is_not_installed(monkeypatch, browser, package):
    monkeypatch.setattr(find, "installed", lambda family: [])
    with pytest.raises(BrowserNotFound, match=package):
        InferenceSession(small_models.add(), browser=BrowserOptions(browser=browser, instance=1))


def test_a_run_that_takes_too_long(new_session):
    session = new_session(small_models.slow(steps=25), providers=["wasm"])
    options = RunOptions()
    options.timeout = 0.5
    with pytest.raises(Timeout, match="Run"):
        session.run(None, FEEDS, options)
    assert len(session.run(None, FEEDS)) == 1


def test_terminate(new_session):
    session = new_session(small_models.slow(steps=25), providers=["wasm"])
    options = RunOptions()
    threading.Timer(0.5, lambda: setattr(options, "terminate", True)).start()
    with pytest.raises(Cancelled):
        session.run(None, FEEDS, options)
    with pytest.raises(Cancelled):
        session.run(None, FEEDS, options)
    assert len(session.run(None, FEEDS)) == 1


def test_all_are_browser_errors():
    assert all(issubclass(e, BrowserError) for e in (BrowserCrashed, BrowserNotFound, ConnectionLost, PageCrashed))

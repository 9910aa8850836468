"""Captured browsers: pages of a Chromium that open the URL by hand, leave, and return."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models
from karma_cases import ADD
from relu_cases import right_and_wrong
from waiting import wait_until

from py_ort import BrowserOptions, InferenceSession
from py_ort.browser import captured, find
from py_ort.browser.captured import browser_of, system_of
from py_ort.browser.loop import loop_thread
from py_ort.browser.pool import pool
from py_ort.exceptions import ConnectionLost, InvalidArgument, Timeout
from py_ort.testing.fleet import Fleet, run_anywhere
from py_ort.testing.runner import RunnerOptions
from py_ort.testing.sources import load_cases, sampled

ROOT = Path(__file__).parents[2]
CAPTURE = BrowserOptions(browser="capture", idle_timeout=0)
FEEDS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "scale": np.ones(3, np.float32)}
SUM = (FEEDS["x"] + 1).tolist()
URL = re.compile(r"http://127\.0\.0\.1:\d+/index\.html\?\S+")


class Tabs:
    """A browser that py_ort did not start, and its tabs. Everything runs in Playwright's thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._call(self._start)

    def _call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return self._thread.submit(work, *arguments).result()

    def _start(self) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        flags = BrowserOptions(webgpu="off", sandbox=False).command_line()
        self._browser = self._playwright.chromium.launch(executable_path=str(find.binary()), args=flags)

    def open(self, url: str) -> Callable[..., Any]:
        """Open a tab; return a function that calls a method of its Playwright page."""
        page = self._call(self._browser.new_page)
        self._call(page.goto, url)
        return lambda method, *arguments: self._call(getattr(page, method), *arguments)

    def close_all(self) -> None:
        """Close the tabs."""
        self._call(lambda: [context.close() for context in self._browser.contexts])

    def end(self) -> None:
        """End the browser."""
        self._call(lambda: (self._browser.close(), self._playwright.stop()))


@pytest.fixture(scope="module")
def other_browser():
    tabs = Tabs()
    yield tabs
    tabs.end()


@pytest.fixture
def tabs(other_browser):
    yield other_browser
    other_browser.close_all()


@pytest.fixture
def announced(monkeypatch):
    """The texts for people."""
    texts = []
    monkeypatch.setattr(captured, "announce", lambda text, url, elsewhere: texts.append(text))
    return texts


def url_of(announced: list[str]) -> str:
    """Return the announced URL, once it is there."""
    return wait_until(lambda: URL.search(" ".join(announced)))[0]


def test_two_share_the_cases_and_may_leave(tabs, announced):
    """One is closed meanwhile and one reloaded: their cases run again, and the URL stays."""
    cases = sampled(load_cases("onnx-node"), 15)
    options, done = RunnerOptions(("wasm",), browser=CAPTURE), []
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(run_anywhere, cases, options, lambda count, *_: done.append(count))
        url = url_of(announced)
        first, second = tabs.open(url), tabs.open(url)
        wait_until(lambda: len(done) > 30)
        first("close")
        wait_until(lambda: len(done) > 60)
        second("reload")
        results = running.result(200)
    assert results.cases.keys() == {case.id for case in cases}
    assert all("browser" not in each.reason for each in results.cases.values())
    assert results.count("passed") > 0.95 * len(cases)
    assert {each.where[:2] for each in results.cases.values()} == {"1 ", "2 ", "3 "}
    assert [bool(node["error"]) for node in results.fleet] == [True, True, False]
    assert len(announced) == 1 and re.match("chrome 1", results.browser) and "Linux" in results.system


def test_it_takes_one_session_after_the_other(tabs, announced):
    def run():
        with InferenceSession(small_models.add(), providers=["wasm"], browser=CAPTURE) as session:
            assert session.run(None, FEEDS)[0].tolist() == SUM and "chrome 1" in repr(session)

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(run)
        tab = tabs.open(url_of(announced))
        running.result(100)
    run()
    session = InferenceSession(small_models.add(), providers=["wasm"], browser=CAPTURE)
    tab("reload")
    with pytest.raises(ConnectionLost):
        wait_until(lambda: not session.run(None, FEEDS))
    run()  # it has returned
    assert len(announced) == 1
    wait_until(lambda: tab("inner_text", "p").startswith("Captured: "))


def test_nobody_comes(announced, tmp_path):
    """One message for each waiting session or run, and an error in time."""
    soon = BrowserOptions(browser="capture", launch_timeout=1)
    wanted = r"no browser was captured within 1 s.*launch_timeout"
    with pytest.raises(Timeout, match=wanted):
        InferenceSession(small_models.add(), browser=soon)
    cases = load_cases([str(right_and_wrong(tmp_path))])
    with pytest.raises(Timeout, match=wanted):
        run_anywhere(cases, RunnerOptions(("wasm",), browser=soon))
    assert len(announced) == 2 and "up to 1 s" in announced[0] and url_of(announced[:1]) == url_of(announced[1:])
    with pytest.raises(InvalidArgument, match="at least one"):
        Fleet(RunnerOptions(("wasm",)))


async def _url() -> str:
    return (await pool().captured(CAPTURE)).url


def test_it_lacks_the_provider(tabs, tmp_path):
    """A captured browser that lacks the provider is told at once; no other browser is waited for."""
    cases = load_cases([str(right_and_wrong(tmp_path))])
    options = RunnerOptions(("webgpu",), skip_missing=True, browser=BrowserOptions(browser="capture"))
    tabs.open(loop_thread().call(_url()))
    began = time.monotonic()
    results = run_anywhere(cases, options)
    assert time.monotonic() - began < 40
    assert results.count("skipped") == 2 and "switched on in that browser" in results.trouble


TEST = """
    import numpy as np, pytest

    @pytest.mark.parametrize("n", range(3))
    def test_add(n, ort_session):
        feeds = {"x": np.full((1, 3), n, np.float32), "scale": np.ones(3, np.float32)}
        assert (ort_session("add.onnx").run(None, feeds)[0] == n + 1).all()
"""


def _conformance(folder: Path) -> list[str]:
    right_and_wrong(folder)
    json_file = ["--json", str(folder / "results.json")]
    engines = ["--provider", "wasm", "--provider", "webgpu", "--skip-missing"]  # a matrix
    return ["py_ort.cli", "conformance", str(folder), "--browser", "capture", *engines, *json_file]


def _karma(folder: Path) -> list[str]:
    for name, output in (("add", "[4, 6]"), ("again", "[4, 6]")):
        (folder / f"{name}.jsonc").write_text(ADD % output)
    return ["karma_compat", "op", "add.jsonc", "-b=wasm", "-e=capture", f"--test-data={folder}"]


def _pytest(folder: Path) -> list[str]:
    (folder / "add.onnx").write_bytes(small_models.add())
    (folder / "test_add.py").write_text("\n".join(line[4:] for line in TEST.splitlines()))
    return ["pytest", "-p", "no:cacheprovider", "--ort-browser=capture", "--ort-provider=wasm", str(folder)]


def _workers_of_pytest(folder: Path) -> list[str]:
    return [*_pytest(folder), "-n", "2"]


COMMANDS = (
    (_conformance, 1, "skipped"),
    (_karma, 0, "1 test completed"),
    *((command, 0, "3 passed") for command in (_pytest, _workers_of_pytest)),
)


def test_commands(tabs, tmp_path):
    """Each shows the URL once, and runs all its work in a browser that opens it; all at the same time."""
    with ThreadPoolExecutor(len(COMMANDS)) as threads:
        for _ in threads.map(lambda each: run_captured(*each, tabs, tmp_path / each[0].__name__), COMMANDS):
            pass
    wasm, webgpu = json.loads((tmp_path / "_conformance/results.json").read_text())["runs"]
    assert (wasm["passed"], wasm["failed"], webgpu["skipped"]) == (1, 1, 2)


def run_captured(command: Callable[[Path], list[str]], status: int, said: str, tabs: Tabs, folder: Path) -> None:
    folder.mkdir()
    printed: list[str] = []
    env, pipe = {**os.environ, "PYTHONPATH": str(ROOT)}, subprocess.PIPE
    line = [sys.executable, "-m", *command(folder)]
    process = subprocess.Popen(line, cwd=folder, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=env)
    reader = threading.Thread(target=lambda: printed.extend(process.stdout), daemon=True)
    reader.start()
    with process:
        try:
            tabs.open(url_of(printed))
            assert process.wait(100) == status, "".join(printed)
        finally:
            process.kill()
            reader.join()
    text = "".join(printed)
    assert said in text and len(set(URL.findall(text))) == 1 and text.count("waiting up to 60 s") == 1, text


@pytest.mark.parametrize(
    ("agent", "browser", "system"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0", "firefox 153.0", "X11; Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/156.0 Safari/537.36 Edg/156.0", "edge 156.0", "Win"),
        ("Mozilla/5.0 (iPhone; CPU) AppleWebKit/605 Version/26.1 Mobile/15E148 Safari/604.1", "safari 26.1", "iPhone"),
        (
            "Mozilla/5.0 (X11) AppleWebKit/537.36 QtWebEngine/6.12.0 Chrome/140.0 Safari/537",
            "qtwebengine 6.12.0",
            "X11",
        ),
        ("something", "something", ""),
    ],
)
def test_user_agents(agent, browser, system):
    assert browser_of(agent) == browser and system_of(agent).startswith(system)

"""Fleets: browsers that a Playwright server, or a WebDriver, starts on other machines."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import processes
import pytest
import small_models
from other_machines import Machine, end, other_machines, running, wait_for_port
from playwright_server import playwright_server
from relu_cases import X, write
from test_gateway import CERTIFICATE, FEEDS

import py_ort
from py_ort.browser import find
from py_ort.browser.launchers import with_playwright
from py_ort.exceptions import BrowserNotFound, InvalidArgument
from py_ort.testing.fleet import Fleet
from py_ort.testing.nodes import nodes_of, prepare
from py_ort.testing.runner import RunnerOptions
from py_ort.testing.sources import load_cases

SUM = (FEEDS["x"] + 1).tolist()
OUR_CHROMIUM = '{"goog:chromeOptions": {"binary": "%s"}}'


def elsewhere(browser: str, machine: Machine, **options: object) -> py_ort.BrowserOptions:
    given = {"host": machine.ours, "certificate": CERTIFICATE, "webgpu": "software", "sandbox": False, **options}
    return py_ort.BrowserOptions(browser=browser, **given)  # type: ignore[arg-type]


def test_a_playwright_server(tmp_path: Path) -> None:
    with other_machines(1) as (machine,), playwright_server(machine, tmp_path / "server") as (browser, _):
        flag = "--of-a-playwright-server"
        options = elsewhere(browser, machine, flags=(flag,))
        with py_ort.InferenceSession(small_models.add(), providers=["webgpu"], browser=options) as session:
            assert session.run(None, FEEDS)[0].tolist() == SUM
            assert session.placement().counts()["webgpu"] == 1
            lines = processes.command_lines()
            pages = [lines[pid][1] for pid in processes.children(flag, "renderer")]
            assert pages and not [line for line in pages if "webui" in line]  # like one that is started here


def test_what_opens_a_fleet_starts_ahead(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In the process that opens it, and without an effect on its browsers."""
    caplog.set_level("WARNING", "py_ort")

    def listening() -> int:
        return sum("py_ort listens at" in text for text in caplog.messages)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0)
        url = f"playwright:ws://127.0.0.1:{silent.getsockname()[1]}/"
        prepare(nodes_of([url, url], py_ort.BrowserOptions(host="127.0.0.1")), jobs=2)  # each has a process
        prepare(nodes_of([url, url], py_ort.BrowserOptions(host="127.0.0.2")), jobs=1)
        until = time.monotonic() + 60
        while not (with_playwright._driver and listening()):
            assert time.monotonic() < until, caplog.messages
            time.sleep(0.05)
        assert listening() == 1 and "127.0.0.2" in caplog.text
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.fixture
def chromedriver(tmp_path: Path) -> Iterator[tuple[str, Machine]]:
    """Return the value of `browser=` for a WebDriver on another machine."""
    if not (program := shutil.which("chromedriver")):
        pytest.skip("chromedriver is not installed (make browsers)")
    with other_machines(1) as (machine,):
        log = tmp_path / "log"
        command = [*machine.inside, program, "--port=9515", "--allowed-ips=", "--allowed-origins=*"]
        with running(command, log) as process:
            wait_for_port(machine.address, 9515, process, log)
            yield f"webdriver:http://{machine.address}:9515?capabilities={OUR_CHROMIUM % find.binary()}", machine


def test_a_webdriver(chromedriver: tuple[str, Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py_ort.browser.launchers.webdriver.KEEPING", 0.05)
    browser, machine = chromedriver
    options = elsewhere(browser, machine, idle_timeout=0)
    with py_ort.InferenceSession(small_models.add(), providers=["webgpu", "wasm"], browser=options) as session:
        assert session.placement().counts()["webgpu"] == 1 and "chrome 1" in repr(session)
        time.sleep(0.3)  # its presence is checked regularly
        assert session.run(None, FEEDS)[0].tolist() == SUM
        launcher = session._opened.runtime.lease.launcher
        assert launcher.system == "linux"
    for _ in range(100):  # closed with its last session, there, too
        if launcher._session is None:
            break
        time.sleep(0.1)
    with pytest.raises(BrowserNotFound, match=r"webdriver:http://[\d.]+:9515#firefox has no such browser"):
        wrong = browser.replace("goog:chromeOptions", "moz:firefoxOptions") + "#firefox"
        py_ort.InferenceSession(small_models.add(), browser=elsewhere(wrong, machine))


def test_workers_of_pytest_share_a_fleet(tmp_path: Path, pytester: pytest.Pytester) -> None:
    """One of three browsers is missing: its worker uses the next."""
    (pytester.path / "add.onnx").write_bytes(small_models.add())
    pytester.makepyfile("""
        import numpy as np, pytest

        @pytest.mark.parametrize("n", range(6))
        def test_add(n, ort_session):
            feeds = {"x": np.full((1, 3), n, np.float32), "scale": np.ones(3, np.float32)}
            assert (ort_session("add.onnx").run(None, feeds)[0] == n + 1).all()
    """)
    with other_machines(1) as (machine,), playwright_server(machine, tmp_path / "server") as (there, _):
        remotes = [f"--ort-remote={browser}" for browser in (there, "playwright:ws://127.0.0.1:9/", there)]
        flags = (f"--ort-host={machine.ours}", "--ort-provider=wasm", "--junit-xml=r.xml", "-n2", "-v", *remotes)
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *flags)
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["*PASSED*test_add?remote-wasm-*"])
    told = ET.parse(pytester.path / "r.xml").getroot().iterfind(".//property[@name='ort_where']")
    where = {item.get("value") for item in told}
    assert where == {f"{number} {there}" for number in (1, 3)}


SAME_TIME = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    import py_ort

    def start(number):
        options = py_ort.BrowserOptions(launch_timeout=30, instance=number)
        py_ort.InferenceSession(sys.argv[1], providers=["wasm"], browser=options).close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(start, (1, 2)))
"""


def test_browsers_that_start_at_the_same_time(tmp_path: Path) -> None:
    """The first ones of a process: they share one server."""
    (tmp_path / "m.onnx").write_bytes(small_models.add())
    command = [sys.executable, "-c", textwrap.dedent(SAME_TIME), str(tmp_path / "m.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr


def test_what_is_no_webdriver() -> None:
    with pytest.raises(BrowserNotFound, match=r"no WebDriver server answers at webdriver:http://127\.0\.0\.1:9\b") as e:
        py_ort.InferenceSession(small_models.add(), browser="webdriver:http://me:secret@127.0.0.1:9?capabilities={}")
    assert "secret" not in str(e.value)
    for wrong in ("{", "3"):
        with pytest.raises(InvalidArgument, match="the parameter capabilities is no"):
            py_ort.InferenceSession(small_models.add(), browser=f"webdriver:http://127.0.0.1:9?capabilities={wrong}")


@pytest.mark.parametrize("jobs", [1, 2])
def test_cases_of_a_browser_that_dies_are_run_elsewhere(tmp_path: Path, py_ort_command, monkeypatch, jobs) -> None:
    """Cases move on if one process serves all browsers, and if each has one."""
    for number in range(40):
        write(tmp_path / f"cases/c{number}", np.maximum(X, 0))
    files = {name: tmp_path / name for name in ("r.json", "r.xml", "r.html")}
    with ExitStack() as stack:
        machines = stack.enter_context(other_machines(2))
        servers = [stack.enter_context(playwright_server(m, tmp_path / m.address)) for m in machines]

        def run_until_one_dies(fleet, cases, progress):
            return run(fleet, cases, lambda done, *_: end(servers[0][1]) if done == 5 else None)

        run = Fleet.run
        monkeypatch.setattr(Fleet, "run", run_until_one_dies)
        remotes = [part for browser, _ in servers for part in ("--remote", browser)]
        status, out, err = py_ort_command(
            *("conformance", tmp_path / "cases", "--provider", "wasm", *remotes, "--jobs", jobs),
            *("--host", machines[0].ours),
            *("--json", files["r.json"], "--junit", files["r.xml"], "--html", files["r.html"]),
        )
    assert status == 0, out + err
    (run,) = json.loads(files["r.json"].read_text())["runs"]
    first, second = run["fleet"]
    assert run["passed"] == 40 and first["error"] and not second["error"], run["fleet"]
    assert first["cases"] + second["cases"] == 40 and second["cases"] > 1
    where = [case["where"] for case in run["cases"].values()]
    assert {name: where.count(name) for name in set(where)} == {
        n["name"]: n["cases"] for n in run["fleet"] if n["cases"]
    }
    cases = ET.parse(files["r.xml"]).getroot().iter("testcase")
    assert {case.find("properties/property").get("value") for case in cases} == set(where)  # type: ignore[union-attr]
    assert second["name"] in files["r.html"].read_text() and re.search(rf"{re.escape(second['name'])}\s", out)


def test_cases_run_before_all_browsers_are_there(tmp_path: Path) -> None:
    """One that accepts connections without an answer counts as missing only after the last case."""
    for number in range(3):
        write(tmp_path / f"c{number}", np.maximum(X, 0))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        slow = f"webdriver:http://127.0.0.1:{silent.getsockname()[1]}"
        nodes = nodes_of(["chromium", slow], py_ort.BrowserOptions(webgpu="off"))
        with Fleet(RunnerOptions(("wasm",), fleet=tuple(nodes), jobs=1)) as fleet:
            results = fleet.run(load_cases(str(tmp_path)), lambda done, *_: silent.close() if done == 3 else None)
    there, gone = results.fleet
    assert there["cases"] == results.count("passed") == 3 and not there["error"]
    assert "no WebDriver server answers" in gone["error"], gone  # and not that it took too long


#: A table of cases, which waits until a browser of the fleet is requested.
WAITING = """
    import os, socket
    from pathlib import Path
    from py_ort.testing import model_case

    with socket.socket(fileno=os.dup(int(os.environ["ASKED"]))) as asked:
        asked.settimeout(60)
        asked.accept()[0].close()
    CASES = [model_case(Path(__file__).with_name("add.onnx"))]
"""


def test_browsers_open_while_cases_are_collected(tmp_path: Path, py_ort_command, monkeypatch) -> None:
    (tmp_path / "add.onnx").write_bytes(small_models.add())
    (tmp_path / "table.py").write_text(textwrap.dedent(WAITING))
    with socket.create_server(("127.0.0.1", 0)) as asked:
        monkeypatch.setenv("ASKED", str(asked.fileno()))
        there = f"webdriver:http://127.0.0.1:{asked.getsockname()[1]}"
        status, out, err = py_ort_command("conformance", tmp_path / "table.py", "--remote", there)
    assert status == 1 and "no WebDriver server answers" in err, out + err

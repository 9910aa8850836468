"""Ctrl-C at any time while a session is made: the process, the browsers and the page are unchanged afterwards."""

import sys

import processes
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")

COMMON = """
import os, signal, sys, threading, time


def interrupted(delay, work):
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        work()
        timer.cancel()
        timer.join()
        time.sleep(0.05)
    except KeyboardInterrupt:
        return True
    return False


def settled():
    # What was under way ends soon, in a thread of its own.
    for thread in threading.enumerate():
        if thread.name == "py_ort-work" and thread.ident is not None:  # interrupted before its start: it never runs
            thread.join(60)
            assert not thread.is_alive()
"""

FIRST = (
    COMMON
    + """
import py_ort
model = open(os.environ["MODEL"], "rb").read()


def make():
    where = py_ort.BrowserOptions(webgpu="off", sandbox=False)
    return py_ort.InferenceSession(model, providers=["wasm"], browser=where)


hit = interrupted(float(os.environ["DELAY"]), make)
import numpy as np
began = time.perf_counter()
with make() as session:
    y = session.run(None, {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)})[0]
    assert y.tolist() == [[1, 1, 1]]
    settled()
    time.sleep(0.3)
    assert len(session.stats()["page"]["sessions"]) == 1
    assert session._opened.runtime.lease.users == 1
assert time.perf_counter() - began < 40
print("well", hit)
"""
)

WARM = (
    COMMON
    + """
import numpy as np
import py_ort
import random
model = open(os.environ["MODEL"], "rb").read()


def make():
    where = py_ort.BrowserOptions(webgpu="software", sandbox=False)
    made.append(py_ort.InferenceSession(model, providers=["webgpu", "wasm"], browser=where))


made, hits = [], 0
make()
(session,) = made
rng = random.Random(7)
began = time.perf_counter()
make()
long = time.perf_counter() - began
made.pop().close()
tries = 0
while tries < 40 or hits < 10 and tries < 400:  # how long the next ones take nobody knows
    tries += 1
    hits += interrupted(rng.uniform(0, long * 1.3), make)
    while len(made) > 1:
        made.pop().close()
settled()
for _ in range(50):
    time.sleep(0.1)
    users, sessions = session._opened.runtime.lease.users, len(session.stats()["page"]["sessions"])
    if (users, sessions) == (1, 1):
        break
assert (users, sessions) == (1, 1), (users, sessions)
assert len(session._opened.session.page.logs) == 1
assert hits >= 10, hits
print("well")
"""
)


@pytest.fixture
def model(tmp_path):
    import small_models

    (tmp_path / "add.onnx").write_bytes(small_models.add())
    return str(tmp_path / "add.onnx")


@pytest.mark.parametrize("delay", [0.005, 0.05, 0.15, 0.27, 0.5, 0.9, 1.5])
def test_the_first_session(model, delay):
    """Most of its time is spent on imports."""
    done = processes.python(FIRST, MODEL=model, DELAY=str(delay), PY_ORT_CACHE="0")
    assert done.stdout.startswith("well"), done.stderr


def test_later_sessions(model):
    done = processes.python(WARM, MODEL=model, PY_ORT_CACHE="0")
    assert done.stdout == "well\n", done.stderr


ALARMS = """
import collections, os, random, signal, sys, time
import numpy as np
import py_ort


class Late(Exception):
    pass


def handler(*_):
    raise kind("mine")


def run():
    while True:
        assert session.run(None, feeds)[0].tolist() == [[3] * 3] * 3


def bound():
    binding = session.io_binding()
    binding.bind_cpu_input("x", feeds["x"])
    binding.bind_cpu_input("scale", feeds["scale"])
    binding.bind_output("y")
    while True:
        session.run_with_iobinding(binding)


def create():
    while True:
        make()


def close():
    while True:
        make().close()


def make():
    where = py_ort.BrowserOptions(webgpu="off", sandbox=False)
    return py_ort.InferenceSession(model, providers=["wasm"], browser=where)


model = open(os.environ["MODEL"], "rb").read()
feeds = {"x": np.full((3, 3), 2, np.float32), "scale": np.ones(3, np.float32)}
session = make()
signal.signal(signal.SIGALRM, handler)
# Of callbacks of weak references and of finalizers Python drops what is raised: the next alarm ends the work then.
dropped = []
sys.unraisablehook = lambda told: dropped.append(getattr(told.object, "__qualname__", repr(told.object)))
rng = random.Random(int(os.environ["SEED"]))
for work in [run] * 40 + [bound] * 20 + [create, close] * 5:
    for kind in (TimeoutError, Late, RuntimeError, KeyError):
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.03), 5)
            work()
        except kind as e:
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert e.args == ("mine",), e
    assert session.run(None, feeds)[0].tolist() == [[3] * 3] * 3
page = session._opened.session.page
for _ in range(100):
    if not page._waiting:
        break
    time.sleep(0.1)
assert page._waiting == {} and page._connection.pending == {} and page.lost is None
assert not any(kept.users for kept in session._opened.runtime._prepared._kept.values())
assert all(name.startswith("WeakSet.") or name.endswith(".__del__") for name in dropped), dropped
print("well")
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_exceptions_of_signal_handlers_arrive_as_they_are(seed, tmp_path):
    import small_models

    (tmp_path / "add.onnx").write_bytes(small_models.add())
    done = processes.python(ALARMS, MODEL=str(tmp_path / "add.onnx"), SEED=str(seed))
    assert done.stdout == "well\n", done.stderr

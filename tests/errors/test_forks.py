"""A forked child has its parent's sessions, but not the thread that talks to their page: errors, and no harm."""

import os

import processes
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

SCRIPT = """
import gc, multiprocessing, os, signal, sys, time
import numpy as np
import small_models
from py_ort import BrowserOptions, InferenceSession, JsepBackend, SessionOptions
from py_ort.exceptions import ConnectionLost, PyOrtError

FEEDS = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}
WHERE = BrowserOptions(webgpu="software", launcher="LAUNCHER", sandbox=False)


def make():
    return InferenceSession(small_models.add(), providers=["webgpu", "wasm"], browser=WHERE)


def refused(ask):
    began = time.perf_counter()
    try:
        ask()
    except ConnectionLost as e:
        assert "fork" in str(e), e
    else:
        raise AssertionError("nothing was raised")
    assert time.perf_counter() - began < 5


def in_child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            work()
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"


session = make()
value = session.create_ortvalue_from_shape_and_type([1, 3], np.float32, "webgpu")
value.update_inplace(FEEDS["x"])
kernels = JsepBackend(browser=WHERE)
binding = session.io_binding()
for name, array in FEEDS.items():
    binding.bind_cpu_input(name, array)
binding.bind_output("y", "webgpu")


def use():
    refused(lambda: session.run(None, FEEDS))
    refused(lambda: session.run_async(None, FEEDS).result(5))
    refused(session.stats)
    refused(session.memory)
    refused(session.release_captured_graph)
    refused(session.get_providers)
    refused(session.get_provider_options)
    refused(session.set_providers)
    refused(binding.run)
    refused(value.numpy)
    refused(lambda: value.update_inplace(FEEDS["x"]))
    refused(lambda: session.create_ortvalue_from_shape_and_type([1, 3], np.float32, "webgpu"))
    refused(lambda: kernels.alloc(16))
    refused(lambda: kernels.create_kernel("Relu"))
    assert [arg.name for arg in session.get_inputs()] == ["x", "scale"], "what needs no page is there"
    session.close()


def forget():
    global session, value, kernels, binding
    session = value = kernels = binding = None
    gc.collect()


def anew():
    with make() as own:
        assert own.run(None, FEEDS)[0].tolist() == [[1, 1, 1]]
    use()
    forget()


for work in (use, forget, anew):
    in_child(work)
    assert session.run(None, FEEDS)[0].tolist() == [[1, 1, 1]], work
    assert value.numpy().tolist() == [[0, 0, 0]], work
    kernels.free(kernels.alloc(16))
    binding.run()
    assert len(session.stats()["page"]["sessions"]) == 1
print("well")
"""

POOL = """
import multiprocessing
import numpy as np
import small_models
from py_ort import BrowserOptions, InferenceSession

FEEDS = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}
where = BrowserOptions(webgpu="off", sandbox=False)
session = InferenceSession(small_models.add(), providers=["wasm"], browser=where)


def run(_):
    try:
        return session.run(None, FEEDS)
    except Exception as e:
        return type(e).__name__


with multiprocessing.get_context("fork").Pool(2) as workers:
    assert set(workers.map_async(run, range(4)).get(60)) == {"ConnectionLost"}
assert session.run(None, FEEDS)[0].tolist() == [[1, 1, 1]]
print("well")
"""


@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_sessions_of_the_parent(launcher):
    done = processes.python(SCRIPT.replace("LAUNCHER", launcher))
    assert done.stdout == "well\n", done.stderr


def test_a_pool_of_processes():
    done = processes.python(POOL)
    assert done.stdout == "well\n", done.stderr

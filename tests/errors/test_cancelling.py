"""A cancelled run ends, even in the middle of a node: its worker is ended, and the other sessions come back."""

import asyncio
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest
import small_models

from py_ort import AsyncInferenceSession, BrowserOptions, InferenceSession, JsepBackend, RunOptions, SessionOptions
from py_ort.browser import page
from py_ort.exceptions import Cancelled, DeviceLost, Fail, Timeout, WorkerEnded
from py_ort.runtime.values.ort_value import OrtValue

#: Separate from other tests' browsers, whose sessions would be affected.
OWN = {"webgpu": "software", "flags": ("--py-ort-test=cancelling",), "idle_timeout": 3600}
ENDLESS = small_models.boxes_apart(200_000)
FEEDS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "scale": np.ones(3, np.float32)}
SUM = FEEDS["x"] + 1
#: The least seconds that these nodes would take if they were not ended.
ENDLESS_SECONDS = 60


def options(timeout: float) -> RunOptions:
    made = RunOptions()
    made.timeout = timeout
    return made


@pytest.fixture
def where(request) -> BrowserOptions:
    """Options of a launcher: the page ends workers; who started its browser matters only where that one is ended."""
    return BrowserOptions(launcher=getattr(request, "param", "process"), **OWN)


#: For tests in which something is ended with its worker, or its browser, for each launcher.
BY_EACH = pytest.mark.parametrize("where", ["playwright", "process"], indirect=True)


@pytest.fixture
def make(where):
    made = []

    def make(model, **arguments):
        made.append(InferenceSession(model, **{"browser": where, "providers": ["wasm"], **arguments}))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def impatient(monkeypatch):
    """A worker occupies a core until it is ended: in most tests that is sooner than in the product."""
    monkeypatch.setattr(page, "WORKER_PATIENCE", 0.5)


SOON = pytest.mark.usefixtures("impatient")


@BY_EACH
def test_a_timeout_ends_a_node(make, caplog):
    endless, beside = make(small_models.endless_on_wasm()), make(small_models.add())
    began = time.perf_counter()
    with pytest.raises(Timeout, match="Run within 1 s"):
        endless.run(None, ENDLESS, options(1))
    assert time.perf_counter() - began < 5, "whoever waits for it is told at once"
    with caplog.at_level(logging.WARNING, "py_ort"):
        assert np.array_equal(beside.run(None, FEEDS)[0], SUM)
    assert time.perf_counter() - began < ENDLESS_SECONDS
    assert "the worker was ended" in caplog.text and "lost" in caplog.text
    assert len(endless.run(None, small_models.boxes_apart(10))[0]) == 10, "the one that was ended comes back, too"
    assert len(beside.stats()["page"]["sessions"]) == 2 and beside.memory()["wasm"]["weights"] >= 0


@SOON
def test_runs_of_others_are_done_again(make):
    endless, beside = make(small_models.endless_on_wasm()), make(small_models.slow(64, 3))
    feeds = {"x": np.eye(64, dtype=np.float32)}
    expected = beside.run(None, feeds)[0]
    futures = []
    threading.Timer(0.5, lambda: futures.append(beside.run_async(None, feeds))).start()
    with pytest.raises(Timeout):
        endless.run(None, ENDLESS, options(1))
    assert np.array_equal(futures[0].result(ENDLESS_SECONDS)[0], expected)


def test_one_that_waits_for_its_turn_ends_nothing(make, caplog):
    """A run that times out while it waits for a long one of another session, which must not be ended."""
    long, beside = make(small_models.slow(steps=40)), make(small_models.add())
    under_way = long.run_async(None, {"x": np.eye(1024, dtype=np.float32)})
    time.sleep(0.3)
    with pytest.raises(Timeout):
        beside.run(None, FEEDS, options(0.1))
    assert len(under_way.result(120)) == 1
    assert "was ended" not in caplog.text
    assert np.array_equal(beside.run(None, FEEDS)[0], SUM)


@SOON
def test_terminate_ends_a_node(make):
    endless, beside = make(small_models.endless_on_wasm()), make(small_models.add())
    run_options = RunOptions()
    threading.Timer(1, lambda: setattr(run_options, "terminate", True)).start()
    began = time.perf_counter()
    with pytest.raises(Cancelled):
        endless.run(None, ENDLESS, run_options)
    assert np.array_equal(beside.run(None, FEEDS)[0], SUM)
    assert time.perf_counter() - began < ENDLESS_SECONDS


@SOON
def test_an_interrupt_ends_a_node(make):
    endless, beside = make(small_models.endless_on_wasm()), make(small_models.add())
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        endless.run(None, ENDLESS)
    assert np.array_equal(beside.run(None, FEEDS)[0], SUM)
    assert time.perf_counter() - began < ENDLESS_SECONDS


@SOON
def test_closing_does_not_wait(make):
    endless, beside = make(small_models.endless_on_wasm()), make(small_models.add())
    with pytest.raises(Timeout):
        endless.run(None, ENDLESS, options(0.5))
    began = time.perf_counter()
    endless.close()
    assert time.perf_counter() - began < 1
    assert np.array_equal(beside.run(None, FEEDS)[0], SUM)
    assert time.perf_counter() - began < ENDLESS_SECONDS
    assert len(beside.stats()["page"]["sessions"]) == 1, "what is closed does not come back"


CLOSED = {
    "node": (small_models.endless_on_wasm, ["wasm"], lambda: ENDLESS),
    "loop": (small_models.endless_loop, ["wasm"], lambda: {"x": np.ones(2, np.float32)}),
    "loop of dispatches": (small_models.loop_of_dispatches, ["webgpu"], lambda: {"x": np.ones(2, np.float32)}),
    "loop that reads the GPU": (small_models.loop_for_the_gpu, ["webgpu"], lambda: {"x": np.ones(2, np.float32)}),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closing_ends_a_run(make, caplog, name):
    model, providers, feeds = CLOSED[name]
    endless, beside = make(model(), providers=providers), make(small_models.add(), providers=providers)
    under_way = endless.run_async(None, feeds())
    time.sleep(1)
    began = time.perf_counter()
    endless.close()
    with pytest.raises(Cancelled, match="closed during its run"):
        under_way.result(ENDLESS_SECONDS)
    assert time.perf_counter() - began < 1, "whoever waits for it is told at once"
    assert np.array_equal(beside.run(None, FEEDS)[0], SUM)
    assert time.perf_counter() - began < ENDLESS_SECONDS
    assert ("the worker was ended" in caplog.text) == (name == "node")
    assert len(beside.stats()["page"]["sessions"]) == 1


@SOON
def test_cancelling_a_task_ends_a_node(where):
    async def main() -> None:
        endless = await AsyncInferenceSession.create(small_models.endless_on_wasm(), providers=["wasm"], browser=where)
        beside = await AsyncInferenceSession.create(small_models.add(), providers=["wasm"], browser=where)
        under_way = asyncio.ensure_future(endless.run(None, ENDLESS))
        await asyncio.sleep(1)
        waiting = asyncio.ensure_future(beside.run(None, FEEDS))
        await asyncio.sleep(0.2)
        began = time.perf_counter()
        under_way.cancel()
        with pytest.raises(asyncio.CancelledError):
            await under_way
        assert np.array_equal((await waiting)[0], SUM), "a run under way is done again"
        assert np.array_equal((await beside.run(None, FEEDS))[0], SUM)
        assert time.perf_counter() - began < ENDLESS_SECONDS
        endless.close()
        beside.close()

    asyncio.run(main())


@SOON
def test_other_workers_do_not_notice(make):
    sessions = [make(model(), pages=2) for model in (small_models.endless_on_wasm, small_models.add)]
    pages = [session._opened.session.page for session in sessions]
    assert pages[0] is not pages[1]
    with pytest.raises(Timeout):
        sessions[0].run(None, ENDLESS, options(0.5))
    began = time.perf_counter()
    while pages[0].lost is None and time.perf_counter() - began < ENDLESS_SECONDS:
        time.sleep(0.1)
    assert isinstance(pages[0].lost, WorkerEnded) and pages[1].lost is None
    assert np.array_equal(sessions[1].run(None, FEEDS)[0], SUM)
    assert len(sessions[0].run(None, small_models.boxes_apart(5))[0]) == 5


@SOON
def test_waiting_for_the_next_worker_counts(make):
    """Loading the session into the worker is held up here: a run waits as long as it may, and says for what."""
    session = make(small_models.endless_on_wasm())
    with pytest.raises(Timeout):
        session.run(None, ENDLESS, options(0.5))
    began = time.perf_counter()
    while not session._opened.session.gone and time.perf_counter() - began < ENDLESS_SECONDS:
        time.sleep(0.1)
    with session._opened._loading:
        began = time.perf_counter()
        with pytest.raises(Timeout, match=r"worker had to be ended.*within 0\.5 s"):
            session.run(None, small_models.boxes_apart(5), options(0.5))
        assert 0.4 < time.perf_counter() - began < ENDLESS_SECONDS
        bound = session.io_binding()
        for name, feed in small_models.boxes_apart(5).items():
            bound.bind_cpu_input(name, feed)
        for output in session.get_outputs():
            bound.bind_output(output.name)
        with pytest.raises(Timeout, match=r"worker had to be ended.*within 0\.5 s"):
            session.run_with_iobinding(bound, options(0.5))
        future = session.run_async(None, small_models.boxes_apart(5), run_options=options(3 * ENDLESS_SECONDS))
        time.sleep(0.5)
        assert not future.done()
    assert len(future.result(3 * ENDLESS_SECONDS)[0]) == 5
    session.run_with_iobinding(bound)
    assert len(bound.copy_outputs_to_cpu()[0]) == 5


@SOON
def test_values_on_the_gpu_are_lost_and_say_so(make):
    beside = make(small_models.add(), providers=["webgpu", "wasm"])
    endless = make(small_models.endless_on_wasm())
    value = beside.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu")
    value.update_inplace(FEEDS["x"])
    feeds = {**FEEDS, "x": value}
    assert np.array_equal(beside.run(None, feeds)[0], SUM)
    bound = beside.io_binding()
    bound.bind_cpu_input("x", FEEDS["x"])
    bound.bind_cpu_input("scale", FEEDS["scale"])
    bound.bind_ortvalue_output("y", value)
    with JsepBackend(browser=beside._engine.sessions.browser) as kernels:
        buffer = kernels.alloc(64)
        with pytest.raises(Timeout):
            endless.run(None, ENDLESS, options(0.5))
        assert np.array_equal(beside.run(None, FEEDS)[0], SUM), "with values from here it goes on"
        with pytest.raises(DeviceLost, match=r"worker was ended.*make the values anew"):
            value.numpy()
        with pytest.raises(WorkerEnded):
            value.update_inplace(FEEDS["x"])
        with pytest.raises(WorkerEnded):
            beside.run(None, feeds)
        with pytest.raises(WorkerEnded):
            beside.run_with_iobinding(bound)
        with pytest.raises(WorkerEnded):
            kernels.copy_async(buffer, 64).result(30)
    fresh = beside.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu")
    fresh.update_inplace(FEEDS["x"])
    assert fresh.data_ptr() > value.data_ptr() + 1000, "the numbers of lost buffers are no others' now"
    assert np.array_equal(beside.run(None, {**FEEDS, "x": fresh})[0], SUM)
    bound.bind_ortvalue_output("y", fresh)
    beside.run_with_iobinding(bound)
    assert np.array_equal(fresh.numpy(), SUM)


@SOON
def test_a_run_that_reads_a_lost_value_is_not_done_again(make):
    beside = make(small_models.add(), providers=["webgpu", "wasm"])
    endless = make(small_models.endless_on_wasm())
    value = beside.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu")
    futures = []
    threading.Timer(0.5, lambda: futures.append(beside.run_async(None, {**FEEDS, "x": value}))).start()
    with pytest.raises(Timeout):
        endless.run(None, ENDLESS, options(1))
    with pytest.raises(WorkerEnded):
        futures[0].result(ENDLESS_SECONDS)
    assert np.array_equal(beside.run(None, FEEDS)[0], SUM)


@SOON
def test_the_plan_is_not_made_again(make, tmp_path, monkeypatch, caplog):
    """It is in the cache. Without a cache the model is read again, if its file is unchanged."""
    file = tmp_path / "model.onnx"
    file.write_bytes(small_models.add())
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path / "cache"))
    cached = make(file)
    monkeypatch.setenv("PY_ORT_CACHE", "0")
    plain, endless = make(file), make(small_models.endless_on_wasm())
    for _ in range(100):
        if list((tmp_path / "cache").rglob("*.plan")) or len(list((tmp_path / "cache").rglob("*"))) > 2:
            break
        time.sleep(0.1)
    file.write_bytes(small_models.gather())
    with pytest.raises(Timeout):
        endless.run(None, ENDLESS, options(0.5))
    with caplog.at_level(logging.INFO, "py_ort"):
        assert np.array_equal(cached.run(None, FEEDS)[0], SUM)
    assert "the plan is in the cache" in caplog.text
    with pytest.raises(Fail, match="not the file any more"):
        plain.run(None, FEEDS)


@SOON
def test_an_endless_creation_ends(make, where):
    """Creating a session runs nodes on the CPU, to find the shapes of the GPU's inputs."""
    beside = make(small_models.add())
    asked = SessionOptions()
    asked.create_timeout = 1.0
    began = time.perf_counter()
    with pytest.raises(Timeout, match="CreateSession"):
        on_cpu = {"forceCpuNodeNames": "endless"}
        make(small_models.endless_to_load(), sess_options=asked, providers=[("webgpu", on_cpu), "wasm"])
    assert np.array_equal(beside.run(None, FEEDS)[0], SUM)
    assert time.perf_counter() - began < ENDLESS_SECONDS
    assert len(beside.stats()["page"]["sessions"]) == 1


@BY_EACH
def test_work_of_the_gpu_is_ended_with_the_browser(make, where, page_errors, caplog, monkeypatch):
    """No worker can end its work in the GPU process, and all others wait for that process."""
    monkeypatch.setattr(page, "GPU_PATIENCE", 3.0)  # a software adapter uses all cores meanwhile
    endless = make(small_models.endless_on_webgpu(), providers=["webgpu"])
    beside = make(small_models.add(), providers=["webgpu"])
    other = make(small_models.add(), pages=2)
    value = OrtValue(np.ones(1, np.float32))
    assert value.numpy()[0] == 1
    feeds = {name: np.ones((128, 128), np.float32) for name in "abcd"}
    began = time.perf_counter()
    with pytest.raises(Timeout):
        endless.run(None, feeds, options(1))
    for session in (beside, other):
        assert np.array_equal(session.run(None, FEEDS)[0], SUM)
    while "browser was replaced" not in caplog.text and time.perf_counter() - began < 60:
        time.sleep(0.2)
    for session in (beside, other):
        assert np.array_equal(session.run(None, FEEDS)[0], SUM)
    assert time.perf_counter() - began < 100
    page_errors.clear()

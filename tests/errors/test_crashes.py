"""A crash of the core in one run: a typed error there, another worker, and sessions that go on in it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import crashes
import numpy as np
import pytest
import small_models
from devtools import chromium_with_devtools, in_workers

from py_ort import AsyncInferenceSession, BrowserOptions, InferenceSession
from py_ort.exceptions import CoreCrashed, InvalidArgument, RuntimeException, WorkerEnded
from py_ort.schema.gen.ErrorCode import ErrorCode

X = np.arange(1024, dtype=np.float32)
FEEDS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "scale": np.ones(3, np.float32)}
SAID = {"trap": "unreachable", "memory": "memory access out of bounds", "stack": "Maximum call stack size exceeded"}
Make = Callable[..., InferenceSession]
Crash = Callable[[str, str], None]


@pytest.fixture(scope="module")
def devtools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The websocket of a browser's DevTools."""
    with chromium_with_devtools(tmp_path_factory.mktemp("profile")) as (websocket, _):
        yield websocket


@pytest.fixture
def where(devtools: str) -> BrowserOptions:
    return BrowserOptions(browser=f"cdp:http://{devtools.split('/')[2]}", webgpu="software", idle_timeout=0)


@pytest.fixture
def crash(devtools: str) -> Crash:
    """Make the next kernel that copies, or the next walk, crash the core: see `crashes.CRASH`."""

    def crash(how: str, place: str) -> None:
        assert in_workers(devtools, f"({crashes.CRASH})({json.dumps([how, place])})") == 1

    return crash


@pytest.fixture
def make(where: BrowserOptions) -> Iterator[Make]:
    made = []

    def make(model: bytes, **arguments: Any) -> InferenceSession:
        made.append(InferenceSession(model, **{"browser": where, "providers": ["wasm"], **arguments}))
        return made[-1]

    yield make
    for session in made:
        session.close()


def goes_on(joined: InferenceSession, beside: InferenceSession) -> None:
    """Return True if both have right results."""
    for factor in (1, 2):
        np.testing.assert_array_equal(joined.run(None, {"x": X * factor})[0], np.concatenate([X, X]) * factor)
        np.testing.assert_array_equal(beside.run(None, FEEDS)[0], FEEDS["x"] + 1)


@pytest.mark.parametrize("how", SAID)
def test_a_crash_in_a_kernel_names_it(make: Make, crash: Crash, how: str, caplog: pytest.LogCaptureFixture) -> None:
    joined, beside = make(crashes.joined()), make(small_models.add())
    goes_on(joined, beside)
    worker = joined._opened.session.page
    crash(how, "kernel")
    with caplog.at_level(logging.WARNING, "py_ort"), pytest.raises(CoreCrashed, match=SAID[how]) as error:
        joined.run(None, {"x": X})
    assert error.value.code == ErrorCode.core_crashed
    assert (error.value.node, error.value.op_type, error.value.provider) == ("joined", "Concat", "wasm")
    assert f"crashed: {SAID[how]} in node 'joined' (Concat); sessions are loaded again" in str(error.value)
    assert "wasm-function" in error.value.stack or how == "stack"
    goes_on(joined, beside)
    assert isinstance(worker.lost, WorkerEnded)
    assert caplog.text.count("Run crashed the core in node 'joined': the worker was ended") == 1
    assert len(beside.stats()["page"]["sessions"]) == 2


@pytest.mark.parametrize("how", SAID)
def test_a_crash_of_a_walk_that_was_suspended(make: Make, crash: Crash, how: str) -> None:
    """The error reaches the call that woke the core, and not the one that started it."""
    joined, beside = make(crashes.joined()), make(small_models.add())
    crash(how, "walk")
    with pytest.raises(CoreCrashed, match=f"the core crashed: {SAID[how]}; sessions are loaded again"):
        joined.run(None, {"x": X})
    goes_on(joined, beside)


def test_runs_that_wait_are_done_again(make: Make, crash: Crash) -> None:
    joined, beside = make(crashes.joined()), make(small_models.add())
    goes_on(joined, beside)
    crash("trap", "kernel")
    crashed = joined.run_async(None, {"x": X})
    waiting = [session.run_async(None, feeds) for session, feeds in [(beside, FEEDS), (joined, {"x": X})] * 3]
    errors = [future.exception(60) for future in (crashed, *waiting)]
    # They begin in threads, each of which may be the first.
    (first,) = [i for i, error in enumerate(errors) if error]
    assert isinstance(errors[first], CoreCrashed)
    for i, future in enumerate((crashed, *waiting)):
        if i != first:
            np.testing.assert_array_equal(future.result()[0], np.concatenate([X, X]) if i % 2 == 0 else FEEDS["x"] + 1)
    goes_on(joined, beside)


def test_tasks_that_wait_go_on(where: BrowserOptions, crash: Crash) -> None:
    async def main() -> None:
        joined = await AsyncInferenceSession.create(crashes.joined(), providers=["wasm"], browser=where)
        beside = await AsyncInferenceSession.create(small_models.add(), providers=["wasm"], browser=where)
        await asyncio.to_thread(crash, "memory", "kernel")
        runs = asyncio.gather(joined.run(None, {"x": X}), beside.run(None, FEEDS), return_exceptions=True)
        error, (y,) = await asyncio.wait_for(runs, 60)
        assert isinstance(error, CoreCrashed)
        np.testing.assert_array_equal(y, FEEDS["x"] + 1)
        joined.close()
        beside.close()

    asyncio.run(main())


def test_values_on_the_gpu_are_lost_and_say_why(make: Make, crash: Crash) -> None:
    joined, beside = make(crashes.joined()), make(small_models.add(), providers=["webgpu", "wasm"])
    value = beside.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu")
    value.update_inplace(FEEDS["x"])
    crash("trap", "kernel")
    with pytest.raises(CoreCrashed):
        joined.run(None, {"x": X})
    with pytest.raises(WorkerEnded, match=r"crashed the core in node 'joined'.*make the values anew"):
        beside.run(None, {**FEEDS, "x": value})
    goes_on(joined, beside)


def test_a_creation_that_crashes(make: Make, crash: Crash) -> None:
    """Its nodes on the CPU are run to find the shapes of the GPU's inputs."""
    beside, joined = make(small_models.add()), make(crashes.joined())
    crash("memory", "kernel")
    arguments = {"model": crashes.joined("Neg"), "providers": [("webgpu", {"forceCpuNodeNames": "joined"}), "wasm"]}
    with pytest.raises(CoreCrashed, match=r"memory access out of bounds in node 'joined'"):
        make(**arguments)
    goes_on(joined, beside)
    np.testing.assert_array_equal(make(**arguments).run(None, {"x": X})[0], np.concatenate([-X, -X]))


def test_errors_that_the_core_tells_crash_nothing(make: Make) -> None:
    gather, beside = make(small_models.gather()), make(small_models.add())
    worker = gather._opened.session.page
    with pytest.raises(RuntimeException):
        gather.run(None, {"index": np.array([9], np.int64)})
    with pytest.raises(InvalidArgument):
        beside.run(None, {"x": FEEDS["x"], "scale": np.ones(4, np.float32)})
    assert worker.lost is None and gather.run(None, {"index": np.array([2], np.int64)})[0] == [2]

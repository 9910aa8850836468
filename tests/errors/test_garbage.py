"""A page that sends nonsense, or no answers: typed errors, soon, for every request."""

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fake_page
import numpy as np
import pytest
import small_models

from py_ort import BrowserOptions, InferenceSession, JsepBackend, RunOptions, SessionOptions
from py_ort.browser import pool as pools
from py_ort.browser import request as requests
from py_ort.browser import starting
from py_ort.exceptions import BrowserError, CoreCrashed, InternalError, PyOrtError, Timeout
from py_ort.runtime import devices
from py_ort.schema.gen.Ack import AckT
from py_ort.schema.gen.Error import ErrorT
from py_ort.schema.gen.ErrorCode import ErrorCode
from py_ort.schema.gen.Log import LogT
from py_ort.schema.gen.Progress import ProgressT
from py_ort.schema.gen.RunResult import RunResultT
from py_ort.wire import encode, frames

FEEDS = {"x": np.zeros((2, 3), np.float32), "scale": np.zeros(3, np.float32)}
_number = itertools.count()


@pytest.fixture
def play(monkeypatch):
    """Replace the page; returns the options of its browser."""

    # Two reasons for which others wait long.
    monkeypatch.setattr(pools, "HEARTBEAT", 0.3)
    monkeypatch.setattr(pools, "SILENCE", 0.5)
    monkeypatch.setattr(requests, "ANSWER_PATIENCE", 2.0)
    monkeypatch.setattr(devices, "_GRACE", 1.0)

    def play(
        *garble: fake_page.Garble, working: tuple[str, ...] = (), launch_timeout: float = 4, has_worker: bool = True
    ) -> BrowserOptions:
        page = fake_page.FakePage(*garble)
        page.working |= {*working}
        page.has_worker = has_worker
        monkeypatch.setattr(starting, "launcher_for", lambda options: page.launcher())
        flags = (f"--fake={next(_number)}",)
        return BrowserOptions(webgpu="software", flags=flags, idle_timeout=0, launch_timeout=launch_timeout)

    return play


def ask_everything(browser: BrowserOptions, create_timeout: float = 5.0) -> tuple[list[PyOrtError], int]:
    """Use everything that communicates with a page; return the errors, and the number of requests."""
    errors: list[PyOrtError] = []
    asked = 0

    def ask(question: Callable[[], Any]) -> Any:
        nonlocal asked
        asked += 1
        began = time.perf_counter()
        try:
            return question()
        except PyOrtError as e:
            assert not isinstance(e, InternalError), "it is not our bug"
            assert str(e)
            errors.append(e)
            return None
        finally:
            assert time.perf_counter() - began < 15

    options = SessionOptions()
    options.create_timeout = create_timeout
    model = small_models.add()
    session = ask(lambda: InferenceSession(model, options, providers=["webgpu", "wasm"], browser=browser))
    if session is not None:
        run_options = RunOptions()
        run_options.timeout = 5.0
        ask(lambda: session.run(None, FEEDS, run_options))
        ask(lambda: session.run(None, FEEDS))
        ask(session.stats)
        ask(session.memory)
        ask(session.release_captured_graph)
        value = ask(lambda: session.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu"))
        if value is not None:
            ask(lambda: value.update_inplace(FEEDS["x"]))
            ask(value.numpy)
            ask(lambda: session.run(None, {**FEEDS, "x": value}))
        ask(lambda: on_the_gpu(session))
        ask(session.close)
    kernels = ask(lambda: JsepBackend(browser=browser))
    if kernels is not None:
        kernel = ask(lambda: kernels.create_kernel("Relu"))
        ask(lambda: kernels.run(kernel or 3, [FEEDS["x"]])[0].numpy())
        ask(lambda: kernels.free(kernels.alloc(64)))
        ask(kernels.close)
    return errors, asked


def on_the_gpu(session: InferenceSession) -> None:
    binding = session.io_binding()
    for name, array in FEEDS.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y", "webgpu")
    binding.run()
    binding.copy_outputs_to_cpu()


def test_a_core_that_crashes_each_time(play):
    """Each run receives an error, none is repeated for ever, and the next one uses another worker."""

    def garble(request: Any, body: Any, payload: list[bytes]) -> Any:
        if request.kind != "Run":
            return fake_page.honestly(request, body, payload)
        error = ErrorT()
        error.code, error.message = ErrorCode.core_crashed, "the core crashed: unreachable"
        return fake_page.honestly(request, error, [])

    with InferenceSession(small_models.add(), providers=["wasm"], browser=play(garble)) as session:
        workers = set()
        for _ in range(3):
            with pytest.raises(CoreCrashed, match="the core crashed: unreachable"):
                session.run(None, FEEDS)
            session.stats()
            workers.add(session._opened.session.page)
        assert len(workers) == 3


def test_an_honest_page_is_understood(play):
    """Otherwise the other tests would prove nothing."""
    errors, asked = ask_everything(play())
    assert errors == [] and asked >= 14


def other_bytes(seed: int) -> fake_page.Garble:
    rng = random.Random(seed)

    def garble(request, body, payload):
        sent = list(fake_page.honestly(request, body, payload))
        if rng.random() < 0.4:
            broken = bytearray(rng.choice(sent))
            for _ in range(rng.choice((1, 1, 4, 40))):
                broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
            sent[0] = bytes(broken)
        return sent

    return garble


def cut(seed: int) -> fake_page.Garble:
    rng = random.Random(seed)

    def garble(request, body, payload):
        whole = b"".join(fake_page.honestly(request, body, payload))
        at = rng.randrange(1, len(whole))
        match rng.randrange(8):
            case 0:
                return [whole[:at]]
            case 1:
                return [whole[at:]]
            case 2:
                return [whole, whole]
            case 3:
                return [whole + whole[:at]]
            case 4:
                return []
            case _:
                return [whole[:at], whole[at:]]

    return garble


#: Meaningless or wrong JSON.
TEXTS = ["{", "[]", "null", "7", '"x"', "[" * 50_000, '{"memory": 5}', '{"memory": {"wasm": {}}}', '{"run_ms": "soon"}']


def strange(seed: int) -> fake_page.Garble:
    """Well-formed messages without a meaning."""
    rng = random.Random(seed)

    def garble(request, body, payload):
        number, total = request.id, sum(len(part) for part in payload)
        if rng.random() > 0.35:
            return fake_page.honestly(request, body, payload)
        match rng.randrange(9):
            case 0:
                number = rng.choice((0, request.id + 1, 4_000_000_000))
            case 1:
                body = rng.choice((AckT, ErrorT, LogT, ProgressT, RunResultT))()
            case 2:
                body = ErrorT()
                body.code, body.message = rng.choice((0, 99, 255)), "\x00"
            case 3:
                total += rng.choice((1, 1 << 20, 1 << 62))
            case _:
                for name in vars(body):
                    if name in ("info", "json"):
                        setattr(body, name, rng.choice(TEXTS))
                    elif name == "outputs":
                        for output in body.outputs if rng.random() < 0.8 else []:
                            field, value = rng.choice(STRANGE)
                            setattr(output, field, value)
                        body.outputs *= rng.choice((0, 1, 1, 1, 2))
                    elif isinstance(getattr(body, name), int):
                        setattr(body, name, rng.choice((0, 1, 0xFFFF_FFFF)))
        return [bytes(f) for f in frames(encode(number, body, total), payload)]

    return garble


STRANGE = [
    ("dtype", 0),
    ("dtype", 8),
    ("dtype", 99),
    ("location", 0),
    ("location", 2),
    ("location", 77),
    ("kind", 1),
    ("kind", 2),
    ("kind", 66),
    ("dims", []),
    ("dims", [0, 3]),
    ("dims", [2, 3, 1 << 31, 1 << 31]),
    ("dims", [1] * 80),
    ("offset", 16),
    ("offset", 1 << 63),
    ("size", 0),
    ("size", 1 << 63),
    ("name", "z"),
    ("gpuId", 0xFFFF_FFFF),
]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("garble", [other_bytes, cut, strange])
def test_garbage(play, garble, seed):
    ask_everything(play(garble(seed)))


def test_json_that_is_none(play):
    def garble(request, body, payload):
        if hasattr(body, "info") and request.kind == "Run":
            body.info = "{"
        return fake_page.honestly(request, body, payload)

    with (
        InferenceSession(small_models.add(), providers=["wasm"], browser=play(garble)) as session,
        pytest.raises(BrowserError, match="JSON"),
    ):
        session.run(None, FEEDS)


@pytest.mark.parametrize("kind", ["Run", "CreateSession", "GetStats"])
def test_an_answer_that_got_lost(play, kind):
    """The worker reports that it has no work, so the wait ends."""

    def garble(request, body, payload):
        return [] if request.kind == kind else fake_page.honestly(request, body, payload)

    with pytest.raises(BrowserError, match=rf"knows nothing of request.*{kind}"):
        session = InferenceSession(small_models.add(), providers=["wasm"], browser=play(garble))
        session.run(None, FEEDS)
        session.stats()


def silence(request, body, payload):
    return []


def test_a_page_that_says_nothing_any_more(play):
    """A run may take any time, as long as its page answers."""

    def host(request, body, payload):
        return [] if dead and request.kind == "Ping" else fake_page.honestly(request, body, payload)

    dead: list[bool] = []
    session = InferenceSession(
        small_models.add(), providers=["wasm"], browser=play(fake_page.honestly, host, working=("Run",))
    )
    run = session.run_async(None, FEEDS)
    time.sleep(1.5)
    assert not run.done(), "it computes, perhaps"
    dead.append(True)
    with pytest.raises(BrowserError, match="said nothing"):
        run.result(10)
    with pytest.raises(BrowserError, match="said nothing"):
        session.run(None, FEEDS)
    session.close()


@pytest.mark.parametrize("asked", ["OpenDevice", "CreateSession", "GetStats", "JsepAlloc", "JsepCopy", "JsepCopyAsync"])
def test_each_request_has_its_time(play, monkeypatch, asked):
    monkeypatch.setattr(requests, "PATIENCE", {**requests.PATIENCE, "JsepCopy": 1.0, "JsepCopyAsync": 1.0})
    monkeypatch.setattr(requests, "ANSWER_PATIENCE", 1.0)
    errors, _ = ask_everything(play(working=(asked,), launch_timeout=2), create_timeout=2.0)
    assert errors and all(isinstance(e, (Timeout, BrowserError)) for e in errors)
    assert any(asked in str(e) for e in errors)


def test_a_worker_that_does_not_come(play):
    with pytest.raises(Timeout, match=r"worker\.js is not there after 4 s"):
        InferenceSession(small_models.add(), providers=["wasm"], browser=play(has_worker=False))


def test_a_second_worker_that_does_not_come(play):
    def host(request, body, payload):
        return [] if request.kind == "OpenWorker" else fake_page.honestly(request, body, payload)

    browser = replace(play(fake_page.honestly, host), pages=2)
    with InferenceSession(small_models.add(), providers=["wasm"], browser=browser), pytest.raises(Timeout):
        InferenceSession(small_models.add(), providers=["wasm"], browser=browser)

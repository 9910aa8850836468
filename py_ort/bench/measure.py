"""Timing: both engines in one page, run in turn, so that the machine's moods hit both alike."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from py_ort.bench.peer import Peer
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.options import BrowserOptions
from py_ort.browser.pool import pool
from py_ort.load import read_whole
from py_ort.options import SessionOptions
from py_ort.providers.resolution import REQUIRE
from py_ort.session import InferenceSession
from py_ort.testing.random_feeds import candidates


@dataclass
class Row:
    """One engine on one model. Times in milliseconds, of the page's clock: input upload and output download included.

    Attributes:
        create_ms: From the model's bytes to a session that can run; the browser was there already.
        first_run_ms: The first run.
        median_ms: Of the steady runs.
        p90_ms: 90th percentile of them.
        nodes: Where the model's nodes ran: "95 webgpu, 2 wasm"; of onnxruntime-web, which does not count them, "webgpu"
            or "some wasm".
        max_rel_err: max |a-b| / (0.001 + |b|) against native onnxruntime (None: it is not installed, or failed).
    """

    model: str
    engine: str
    provider: str
    threads: int
    create_ms: float
    first_run_ms: float
    median_ms: float
    p90_ms: float
    runs: int
    nodes: str
    max_rel_err: float | None
    adapter: str

    def as_dict(self) -> dict[str, Any]:
        """Return the row as it stands in JSON."""
        return asdict(self)


class Engine(Protocol):
    """What is timed."""

    name: str

    def create(self, model: bytes, timeout: float) -> None: ...
    def run(self, feeds: dict[str, np.ndarray], timeout: float) -> tuple[dict[str, np.ndarray], float]: ...
    def nodes(self, timeout: float) -> str: ...
    def close(self) -> None: ...


class Ours:
    """py_ort as an `Engine`."""

    name = "py_ort"

    def __init__(self, provider: str, browser: BrowserOptions, threads: int) -> None:
        self._provider, self._browser, self._threads = provider, browser, threads
        # The browser is there before the clock starts, as it is for the other engine.
        self._lease = loop_thread().call(pool().acquire(browser))
        self.session: InferenceSession | None = None

    def create(self, model: bytes, timeout: float) -> None:
        """Load a model, on this provider alone but for what it cannot do.

        Raises:
            NoAdapter, EPFail: The browser has not this provider.
        """
        options = SessionOptions()
        options.add_session_config_entry(REQUIRE, "1")
        options.create_timeout = options.run_timeout = timeout
        options.intra_op_num_threads = self._threads
        providers = [self._provider] if self._provider == "wasm" else [self._provider, "wasm"]
        self.session = InferenceSession(model, options, providers, browser=self._browser)

    def run(self, feeds: dict[str, np.ndarray], timeout: float) -> tuple[dict[str, np.ndarray], float]:
        """Run once; return the outputs and the page's own milliseconds."""
        assert self.session is not None
        names = [arg.name for arg in self.session.get_outputs()]
        outputs = self.session.run(names, feeds)
        return dict(zip(names, outputs, strict=True)), self.session.stats()["last_run"]["run_ms"]

    def nodes(self, timeout: float) -> str:
        """Return where the nodes run."""
        assert self.session is not None
        return ", ".join(f"{count} {name}" for name, count in self.session.placement().counts().items() if count)

    def close(self) -> None:
        """Close the session."""
        if self.session is not None:
            self.session.close()
        soon(lambda: pool().release(self._lease))


@dataclass
class _Course:
    """An engine's times so far."""

    engine: Engine
    provider: str
    create_ms: float = 0
    first_ms: float = 0
    error: float | None = None
    steady: list[float] | None = None
    nodes: str = ""


def measure(
    model: str | Path,
    provider: str,
    *,
    threads: int = 1,
    runs: int = 10,
    against: Sequence[str] = (),
    browser: BrowserOptions | None = None,
    feeds: Mapping[str, np.ndarray] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    timeout: float = 600,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """Time one model.

    Args:
        model: An ONNX file.
        provider: "webgpu" or "wasm".
        threads: Of wasm, both engines.
        runs: Steady runs of each engine; three more warm up.
        against: Flavours of onnxruntime-web (see `py_ort.bench.peer.FLAVOURS`).
        browser: The browser.
        feeds: Inputs by name; the others are random.
        shapes: Shapes of random inputs; see `py_ort.testing.random_feeds`.
        timeout: Seconds for a creation or a run.
        progress: Called with what happens.
    """
    browser = browser or BrowserOptions()
    data = read_whole(model)
    ours = Ours(provider, browser, threads)
    courses = [_Course(ours, provider)]
    try:
        progress(f"{Path(model).name}: py_ort {provider}")
        _create(courses[0], data, timeout)
        assert ours.session is not None
        inputs, expected = _feeds(data, ours.session, feeds or {}, shapes or {})
        _first(courses[0], inputs, expected, timeout)
        for flavour in against:
            progress(f"{Path(model).name}: onnxruntime-web {flavour}")
            courses.append(_Course(Peer(flavour, browser, threads), flavour))
            _create(courses[-1], data, timeout)
            _first(courses[-1], inputs, expected, timeout)
        for i in range(runs + 3):
            progress(f"{Path(model).name}: run {i + 1} of {runs + 3}")
            for course in courses:
                _, ms = course.engine.run(inputs, timeout)
                if i >= 3:
                    course.steady = [*(course.steady or []), ms]
        for course in courses:
            course.nodes = course.engine.nodes(timeout)
        adapter = ours.session.adapter
    finally:
        for course in courses:
            course.engine.close()
    return [_row(Path(model).stem, course, threads, adapter) for course in courses]


def _create(course: _Course, model: bytes, timeout: float) -> None:
    began = time.perf_counter()
    course.engine.create(model, timeout)
    course.create_ms = (time.perf_counter() - began) * 1000


def _first(course: _Course, feeds: dict[str, np.ndarray], expected: dict[str, Any] | None, timeout: float) -> None:
    outputs, course.first_ms = course.engine.run(feeds, timeout)
    if expected is not None:
        course.error = max((_relative_error(outputs[name], value) for name, value in expected.items()), default=0.0)


def _row(model: str, course: _Course, threads: int, adapter: str) -> Row:
    steady = course.steady or [course.first_ms]
    p90 = float(np.percentile(steady, 90))
    return Row(
        model, course.engine.name, course.provider, threads, course.create_ms, course.first_ms,
        statistics.median(steady), p90, len(steady), course.nodes, course.error,
        adapter if course.provider != "wasm" else "",
    )  # fmt: skip


def _feeds(
    model: bytes, session: InferenceSession, given: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int]]
) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    """Return the first of the candidate feeds that native onnxruntime accepts, and its outputs for them."""
    native = _native(model)
    open_inputs = [arg for arg in session.get_inputs() if arg.name not in given]
    tried = [{**found, **given} for found in candidates(open_inputs, shapes)]
    for feeds in tried:
        # Of another size than the model wants: what native onnxruntime says of the last one, ours will say too.
        with contextlib.suppress(Exception):
            return feeds, native(feeds) if native else None
    return tried[0], None


def _native(model: bytes) -> Callable[[dict[str, np.ndarray]], dict[str, Any]] | None:
    """Return native onnxruntime's run of a model; None if it is not installed, or does not take the model."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:  # it is a check, not the job: a model that native onnxruntime refuses is timed all the same
        return None
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds), strict=True))


def _relative_error(got: np.ndarray, wanted: np.ndarray) -> float:
    if wanted.dtype.kind != "f" or not wanted.size:
        return 0.0 if np.array_equal(got, wanted) else float("inf")
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    return float(np.max(np.abs(a - b) / (1e-3 + np.abs(b))))

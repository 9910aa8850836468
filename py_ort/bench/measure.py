"""Timing: both engines in one page, run in turn, so that the machine's moods hit both alike."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from py_ort.bench.floor import Floors
from py_ort.bench.ours import Engine, Ours
from py_ort.bench.peer import Peer
from py_ort.bench.quantized import quantize as quantize_model
from py_ort.browser.browser_options import BrowserOptions
from py_ort.compiler.load import read_proto, read_whole
from py_ort.compiler.package.format import is_package
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.providers import canonical_provider, on_device
from py_ort.testing.case import relative_error
from py_ort.testing.model_inputs import ModelInputs
from py_ort.testing.native_model import NativeModel
from py_ort.testing.random_feeds import candidates, random_feeds


@dataclass
class Row:
    """One engine on one model. Times in milliseconds, of the page's clock: input upload and output download included.

    Attributes:
        create_ms: From the model's bytes to a session that can run; the browser was there already.
        first_run_ms: The first run.
        median_ms: Median of the steady runs.
        p90_ms: 90th percentile of them.
        nodes: Where the model's nodes ran: "95 webgpu, 2 wasm"; of onnxruntime-web, which does not count them, the
            provider, or "some wasm".
        max_rel_err: max |a-b| / (0.001 + |b|) against `reference` (None: there is none).
        reference: Whose outputs those of this row were compared with: "onnxruntime", or the other engine in the page
            where native onnxruntime is not installed, or does not take the model; "": nobody's.
        no_reference: Why native onnxruntime has no outputs to compare with; "".
        inputs: Shapes of the inputs, by name.
        error: Why it has no times, which are None then; "" where it has.
        min_ms: The shortest of the steady runs.
        browser: As it was asked for: "firefox".
        browser_version: Its name and version, as it says; "" if it was not started.
        before_ms: The median of the earlier row that this one is compared with; None: there is none.
        quantized: How the model was quantized ("dynamic", "qdq"); "": it is the given one.
        float_ms: The median of the same engine on the given model; None: it is that one, or failed.
        floor: Lower bound on the device, with as many dispatches as py_ort has: `Floor.as_dict`; None: not known.
    """

    model: str
    engine: str
    provider: str
    threads: int
    create_ms: float | None
    first_run_ms: float | None
    median_ms: float | None
    p90_ms: float | None
    runs: int
    nodes: str
    max_rel_err: float | None
    adapter: str
    reference: str = ""
    error: str = ""
    min_ms: float | None = None
    browser: str = ""
    browser_version: str = ""
    before_ms: float | None = None
    quantized: str = ""
    float_ms: float | None = None
    floor: dict[str, float] | None = None
    no_reference: str = ""
    inputs: dict[str, list[int]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the row: all that may not differ between two compared rows."""
        return self.model, self.engine, self.provider, self.threads, self.browser, self.quantized

    def as_dict(self) -> dict[str, Any]:
        """Return the row as it stands in JSON."""
        return asdict(self)


@dataclass
class _Form:
    """A model for all engines: its bytes, feeds and native onnxruntime's outputs, or the reason for none."""

    data: bytes = b""
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    expected: Mapping[str, Any] | None = None
    no_reference: str = ""
    quantized: str = ""
    error: str = ""


@dataclass
class _Course:
    """An engine's times so far."""

    name: str
    provider: str
    form: _Form
    make: Callable[[], Engine] | None = None
    engine: Engine | None = None
    create_ms: float | None = None
    first_ms: float | None = None
    outputs: dict[str, Any] | None = None
    difference: float | None = None
    reference: str = ""
    steady: list[float] = field(default_factory=list)
    nodes: str = ""
    error: str = ""

    def tries(self, step: Callable[..., None], *arguments: Any) -> None:
        """Take a step, unless it failed before; note if it does now."""
        self.error = self.error or self.form.error
        if self.error or self.make is None:
            return
        try:
            self.engine = self.engine or self.make()
            step(self, self.engine, *arguments)
        except PyOrtError as e:
            self.error = f"{type(e).__name__}: {e}"


def measure(
    model: str | Path,
    provider: str,
    *,
    threads: int = 1,
    runs: int = 10,
    against: Sequence[str] = (),
    ours: bool = True,
    quantize: Sequence[str] = (),
    browser: BrowserOptions | None = None,
    feeds: Mapping[str, np.ndarray] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    timeout: float = 600,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    floors: Floors | None = None,
) -> list[Row]:
    """Time one model. The row of an engine that fails has the reason.

    Args:
        model: An ONNX file.
        provider: Its name.
        threads: Threads of wasm, in both engines.
        runs: Steady runs of each engine; three more warm up.
        against: Flavors of onnxruntime-web (see `py_ort.bench.peer.FLAVORS`).
        ours: True to time py_ort, too.
        quantize: Ways to quantize the model (`py_ort.bench.quantized.METHODS`); each has rows of its own, timed in
            turn with the others. The feeds, and random ones like them, calibrate it.
        browser: The browser.
        feeds: Inputs by name; the others are random.
        shapes: Shapes of random inputs; see `py_ort.testing.random_feeds`.
        dims: Numbers for dimensions that have a name: written into the model, for all engines alike.
        timeout: Seconds for a creation or a run.
        progress: Called with the stage, its number, and the number of stages.
        floors: Numbers of devices that were measured for earlier models.

    Raises:
        PyOrtError: The model cannot be read, or no feeds can be made for it.
    """
    browser = browser or BrowserOptions()
    data = _contents(model, dims or {})
    if quantize and is_package(model):
        raise InvalidArgument(f"{os.fspath(model)}: what is quantized is the ONNX file that it was exported from")
    forms = [_given(data, feeds or {}, shapes or {}, dims or {})]
    inputs = dict(forms[0].inputs)
    for method in quantize:
        progress(f"{Path(model).name}: quantizing, {method}", 0, 1)
        forms.append(_quantized(data, method, inputs, feeds or {}))
    own = [_Course(Ours.name, provider, form, lambda: Ours(provider, browser, threads)) for form in forms if ours]
    courses: list[_Course] = []
    for number, form in enumerate(forms):
        courses += own[number : number + 1]
        courses += (_course_of_peer(flavor, form, browser, threads) for flavor in against)
    done, steps = 0, 2 * len(courses) + runs + _WARM_UP

    def step(what: str) -> None:
        nonlocal done
        progress(f"{Path(model).name}: {what}", done, steps)
        done += 1

    adapter = version = ""
    floor_of: dict[str, dict[str, float] | None] = {}
    try:
        for course in courses:
            step(f"{course.name} {course.provider}")
            course.tries(_create, course.form.data, timeout)
            step(f"{course.name} {course.provider}, first run")
            course.tries(_first, inputs, timeout)
        for form in forms:
            _compare([course for course in courses if course.form is form], form.expected)
        sessions = (course.engine.session for course in own if isinstance(course.engine, Ours))
        adapter = next((session.adapter for session in sessions if session is not None), "")
        version = next((c.engine.browser for c in courses if c.engine is not None), "")
        for i in range(runs + _WARM_UP):
            step("steady runs")
            for course in courses:
                if threads > 1 and len(courses) > 1:
                    time.sleep(_AT_REST)
                course.tries(_again, inputs, timeout, i >= _WARM_UP)
        for course in courses:
            course.tries(_finish, timeout)
        floors = floors or Floors()
        for course in own:
            if isinstance(course.engine, Ours) and course.steady:
                best = course.engine.floor(floors, course.form.data, inputs, course.outputs or {})
                floor_of[course.form.quantized] = best
    finally:
        for course in courses:
            if course.engine is not None:
                course.engine.close()
    rows = [_row(Path(model).stem, course, threads, adapter, browser, version) for course in courses]
    floats = {(row.engine, row.provider): row.median_ms for row in rows if not row.quantized}
    for row in rows:
        row.float_ms = floats[row.engine, row.provider] if row.quantized else None
        floor = floor_of.get(row.quantized)
        # One above a run is none: the machine was busier when the device was measured.
        row.floor = floor if floor and row.median_ms is not None and floor["ms"] <= row.median_ms else None
    return rows


_WARM_UP = 3
#: Seconds before a run on several threads beside another engine, whose own spin for a while after theirs: on two cores
#: one that does so doubles the time of the next.
_AT_REST = 0.03


def _course_of_peer(flavor: str, form: _Form, browser: BrowserOptions, threads: int) -> _Course:
    return _Course(Peer.name, flavor, form, lambda: Peer(flavor, browser, threads))


def _quantized(data: bytes, method: str, inputs: dict[str, np.ndarray], given: Mapping[str, np.ndarray]) -> _Form:
    """Quantize a model, and run it in native onnxruntime."""

    def calibration() -> Iterator[dict[str, np.ndarray]]:
        yield inputs
        known = ModelInputs.of(data)
        shapes = {name: array.shape for name, array in inputs.items()}
        for seed in range(2):
            yield random_feeds(known.args, shapes, seed=seed, given=given, values=known.accepted)

    try:
        made = quantize_model(read_proto(data).SerializeToString(), method, calibration())
    except PyOrtError as e:
        return _Form(quantized=method, error=f"{type(e).__name__}: {e}")
    return _form(made, [inputs], method)


def _contents(model: str | os.PathLike[str], dims: Mapping[str, int]) -> bytes:
    if not is_package(model):
        return _with_sizes(read_whole(model), dims)
    if dims:
        raise InvalidArgument(f"{os.fspath(model)}: its dimensions were decided when it was exported")
    return Path(model).read_bytes()


def _with_sizes(data: bytes, dims: Mapping[str, int]) -> bytes:
    """Write sizes into a model."""
    if not dims:
        return data
    proto = read_proto(data)
    for value in proto.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
    return proto.SerializeToString()


def _create(course: _Course, engine: Engine, model: bytes, timeout: float) -> None:
    began = time.perf_counter()
    engine.create(model, timeout)
    course.create_ms = (time.perf_counter() - began) * 1000


def _first(course: _Course, engine: Engine, feeds: dict[str, np.ndarray], timeout: float) -> None:
    course.outputs, course.first_ms = engine.run(feeds, timeout)


def _again(course: _Course, engine: Engine, feeds: dict[str, np.ndarray], timeout: float, counts: bool) -> None:
    _, ms = engine.run(feeds, timeout)
    if counts:
        course.steady.append(ms)


def _finish(course: _Course, engine: Engine, timeout: float) -> None:
    course.nodes = engine.nodes(timeout)


def _compare(courses: Sequence[_Course], expected: Mapping[str, Any] | None) -> None:
    """Compare first outputs with those of native onnxruntime; without it ours with the other engine's."""
    ours = courses[0]
    if expected is not None:
        for course in courses:
            _differ(course, expected, "onnxruntime")
    elif peer := next((course for course in courses[1:] if course.outputs is not None), None):
        assert peer.outputs is not None
        _differ(ours, peer.outputs, f"{peer.name} {peer.provider}")


def _differ(course: _Course, expected: Mapping[str, Any], reference: str) -> None:
    if course.outputs is not None:
        differences = (relative_error(course.outputs[name], value) for name, value in expected.items())
        course.difference, course.reference = max(differences, default=0.0), reference


def _row(model: str, course: _Course, threads: int, adapter: str, browser: BrowserOptions, version: str = "") -> Row:
    steady = course.steady or ([] if course.first_ms is None else [course.first_ms])
    well = bool(steady) and not course.error
    return Row(
        model, course.name, course.provider, threads, course.create_ms, course.first_ms,
        statistics.median(steady) if well else None, float(np.percentile(steady, 90)) if well else None,
        len(course.steady), course.nodes, course.difference,
        adapter if on_device(canonical_provider(course.provider)) else "",
        course.reference, course.error, min(steady) if well else None, browser.name, version,
        quantized=course.form.quantized, no_reference=course.form.no_reference,
        inputs={name: list(array.shape) for name, array in course.form.inputs.items()},
    )  # fmt: skip


def failed(model: str | Path, provider: str, threads: int, browser: BrowserOptions, error: PyOrtError) -> Row:
    """Return the row of a model of which nothing could be measured."""
    course = _Course(Ours.name, provider, _Form(), error=f"{type(error).__name__}: {error}")
    return _row(Path(model).stem, course, threads, "", browser)


def _given(
    model: bytes, given: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int]
) -> _Form:
    """Return the model as it is given."""
    inputs = ModelInputs.of(model)
    tried = list(candidates(inputs.args, shapes, given=given, dims=dims, values=inputs.accepted))
    return _form(model, tried)


def _form(model: bytes, tried: Sequence[dict[str, np.ndarray]], quantized: str = "") -> _Form:
    """Return a form with the first of the feeds that native onnxruntime accepts, and its outputs for them."""
    native = NativeModel(model)
    # If it accepts none, our session gives the reason, too.
    inputs, expected = native.first_taken(tried) or (tried[0], None)
    return _Form(model, inputs, expected, "" if expected else native.trouble, quantized)

"""Compares an exported file with native onnxruntime, in each browser, on each provider that it has a plan for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from py_ort.boundary import public_function
from py_ort.browser import find
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread
from py_ort.compiler.package.format import Header, PlanEntry
from py_ort.exceptions import BrowserError, InvalidArgument
from py_ort.exporting.checking.visitor import Job, Result, run_jobs
from py_ort.providers import CPU
from py_ort.testing.closeness import closeness
from py_ort.testing.native_model import NativeModel
from py_ort.testing.random_feeds import candidates

#: Prefix of the runtime's error for a requested provider that is missing.
_NONE = "no execution provider is available: "
SAME, DIFFERS, FAILED, ABSENT = "same", "differs", "failed", "not there"


@dataclass(frozen=True)
class CheckRow:
    """A plan in a browser. Times in milliseconds of the page's clock.

    Attributes:
        browser: Name and version.
        provider: Its name.
        shapes: The plan's shapes; {}: all.
        outcome: "same", "differs" (beyond the tolerance), "failed", or "not there": the browser has no such provider.
        detail: The difference, the error, or the reason why it is not there; "".
        difference: The largest difference of an element, relative to the output's largest one; None: not measured.
        load_ms: From the file's URL to a session that can run.
        first_run_ms: The first run.
        second_run_ms: The second.
    """

    browser: str
    provider: str
    shapes: Mapping[str, Sequence[int]]
    outcome: str
    detail: str = ""
    difference: float | None = None
    load_ms: float | None = None
    first_run_ms: float | None = None
    second_run_ms: float | None = None


@dataclass(frozen=True)
class CheckReport:
    """Result of `check_export`.

    Attributes:
        file: The exported file.
        reference: Source of the expected outputs: "onnxruntime 1.31.1", or "wasm in" a browser; "": none.
        without: Reason why native onnxruntime was not used; "".
        rows: One for each plan in each browser.
        unchecked: Providers that the file has plans for, and no browser has.
        feeds: Shape and dtype of the feeds, by input.
    """

    file: str
    reference: str
    without: str
    rows: Sequence[CheckRow]
    unchecked: Sequence[str] = ()
    feeds: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if each plan ran in some browser, with the same results everywhere."""
        return not self.unchecked and all(row.outcome in (SAME, ABSENT) for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {**asdict(self), "ok": self.ok}


@public_function
def check_export(
    file: str | os.PathLike[str],
    model: str | os.PathLike[str] | bytes | None = None,
    feeds: Mapping[str, np.ndarray] | None = None,
    *,
    browsers: Sequence[str | BrowserOptions] = (),
    tolerance: float | None = None,
    values: Mapping[str, Sequence[int]] | None = None,
    timeout: float = 600.0,
    progress: Callable[[str, int, int], None] | None = None,
) -> CheckReport:
    """Run an exported file as a page would, with `py_ort.mjs`, in real browsers, and compare its outputs.

    Args:
        file: The `.pyort` file.
        model: The ONNX model, for native onnxruntime, whose outputs are the expected ones. Without it, or if
            onnxruntime is not installed or refuses the model, the first outputs of wasm are.
        feeds: By input name, of any dtype of ONNX; the others are random numbers.
        browsers: "chromium", "firefox", "webkit", paths, or options. Default: the installed ones.
        tolerance: Permitted difference of outputs; see `py_ort.testing.closeness.closeness`.
        values: By input name the numbers that it accepts, if limited; see `py_ort.testing.accepted_values`.
        timeout: Seconds for all runs of one browser.
        progress: Called with the stage, its finished part, and its total.

    Returns:
        The results. Differences and failures in a browser are not raised.

    Raises:
        NoSuchFile, InvalidProtobuf, NotImplemented: The file cannot be read.
        InvalidArgument: Feeds cannot be made, or a browser is unknown.
        BrowserNotFound: No browser is installed.
    """
    from py_ort.compiler.package.read import Package

    path, report = Path(os.fsdecode(file)), progress or (lambda stage, done, total: None)
    header = Package(path).header
    files = [path, *(path.parent / part.name for part in header.parts)]
    report("running native onnxruntime", 0, 0)
    native = NativeModel(model)
    jobs, wanted = _jobs(header, feeds or {}, values or {}, native)
    reference = native.name if wanted else ""
    chosen = [BrowserOptions.of(each) for each in browsers] or _installed()
    rows: list[CheckRow] = []
    for number, browser in enumerate(chosen):
        report(f"running in {browser.browser}", number, len(chosen))
        try:
            name, results = loop_thread().call(run_jobs(files, jobs, browser, timeout))
        except BrowserError as e:
            error = f"{type(e).__name__}: {e}"
            rows += [CheckRow(browser.browser, p.providers[0], p.shapes, FAILED, error) for p in header.plans]
            continue
        if wanted is None and (found := _of_wasm(header, jobs, results)):
            wanted, reference = found, f"wasm in {name}"
        pairs = zip(header.plans, results, wanted or repeat(None), strict=False)
        rows += [_row(name, plan, header, result, outputs, tolerance) for plan, result, outputs in pairs]
    ran = {row.provider for row in rows if row.outcome != ABSENT}
    unchecked = [name for name in dict.fromkeys(plan.providers[0] for plan in header.plans) if name not in ran]
    fed = {name: f"{array.dtype} {list(array.shape)}" for name, array in jobs[0].feeds.items()}
    return CheckReport(str(path), reference, native.trouble, rows, unchecked, fed)


def _installed() -> list[BrowserOptions]:
    found = [family for family in find.FAMILIES if find.installed(family)]
    if not found:
        find.binary()  # the error lists the searched places
    return [BrowserOptions(browser=family) for family in found]


Outputs = list[Sequence[Any]]


def _jobs(
    header: Header, given: Mapping[str, np.ndarray], values: Mapping[str, Sequence[int]], native: NativeModel
) -> tuple[list[Job], Outputs | None]:
    """Return a job for each plan, with the first feeds that native onnxruntime accepts, and its outputs."""
    known = {arg.name: arg for arg in header.inputs}
    if unknown := [name for name in given if name not in known]:
        raise InvalidArgument(f"the model has no input {unknown[0]!r}: it has {', '.join(map(repr, known))}")
    jobs: list[Job] = []
    outputs: list[Sequence[Any] | None] = []
    for plan in header.plans:
        fitting = {name: a for name, a in given.items() if list(a.shape) == list(plan.shapes.get(name, a.shape))}
        shapes = {name: shape for name, shape in plan.shapes.items() if name not in fitting}
        named = {
            dim: size
            for name, shape in plan.shapes.items()
            for dim, size in zip(known[name].dims or (), shape, strict=False)
            if isinstance(dim, str)
        }
        tried = [
            Job(plan.providers[0], feeds, named)
            for feeds in candidates(header.inputs, shapes, given=fitting, values=values)
        ]
        for job in tried:
            before = next((i for i, other in enumerate(jobs) if _same_feeds(other, job)), None)
            found = native.run(job.feeds) if before is None else outputs[before]
            if found is not None:
                break
        jobs.append(job if found is not None else tried[0])
        outputs.append(found)
    complete = [each for each in outputs if each is not None]
    return jobs, complete if len(complete) == len(jobs) else None


def _same_feeds(a: Job, b: Job) -> bool:
    return all(np.array_equal(array, b.feeds[name]) for name, array in a.feeds.items())


def _of_wasm(header: Header, jobs: Sequence[Job], results: Sequence[Result]) -> Outputs | None:
    """Return wasm's outputs for each job's feeds; None if it failed."""
    found: Outputs = []
    for job in jobs:
        same = (
            result.outputs
            for other, result in zip(jobs, results, strict=True)
            if other.provider == CPU and result.outputs is not None and _same_feeds(other, job)
        )
        outputs = next(same, None)
        if outputs is None:
            return None
        found.append(outputs)
    return found


def _row(
    browser: str,
    plan: PlanEntry,
    header: Header,
    result: Result,
    wanted: Sequence[Any] | None,
    tolerance: float | None,
) -> CheckRow:
    row = CheckRow(browser, plan.providers[0], plan.shapes, SAME)
    if result.outputs is None:
        outcome = ABSENT if result.code == "no_adapter" else FAILED
        return replace(row, outcome=outcome, detail=result.error.removeprefix(_NONE))
    load, first, second = result.times_ms
    row = replace(row, load_ms=load, first_run_ms=first, second_run_ms=second)
    if wanted is None:
        return replace(row, outcome=FAILED, detail="there is nothing to compare its outputs with")
    worst = 0.0
    for arg, got, expected in zip(header.outputs, result.outputs, wanted, strict=True):
        text, part = closeness(got, expected, tolerance)
        worst = max(worst, part)
        if text:
            return replace(row, outcome=DIFFERS, detail=f"output {arg.name!r}: {text}", difference=worst)
    return replace(row, difference=worst)

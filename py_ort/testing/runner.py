"""Runs cases in a few processes, each with its own browser.

Results are named after the providers that were asked for, so none of these may be left out: without one nothing runs.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread
from py_ort.browser.pool import pool
from py_ort.exceptions import EPFail, InvalidArgument, PyOrtError
from py_ort.providers import DEFAULT, PROVIDERS, Placement, Provider, canonical_provider
from py_ort.providers.resolution import REQUIRE, Wanted, resolve
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.page_runtime import PageRuntime
from py_ort.runtime.values.ort_value import OrtValue
from py_ort.testing.case import Case, DataSet, difference
from py_ort.testing.results import FAILED, OURS, PASSED, SKIPPED, Outcome, Results
from py_ort.testing.worker_pool import WorkerPool

#: Cases per task: enough to hide the hand-over, few enough to share them out evenly.
_CHUNK = 20


@dataclass(frozen=True)
class RunnerOptions:
    """How cases are run.

    Attributes:
        providers: As for `InferenceSession`; all of them are required.
        skip_missing: True to skip cases, with the reason, if the browser lacks one of these providers.
        fallback: True if nodes may run on other providers than the first. If False, at least one must run on the first:
            shape arithmetic, which is always on the CPU, is no test of a GPU.
        browser: The browser.
        fleet: Browsers elsewhere that share the cases, instead of it; see `py_ort.testing.fleet`.
        jobs: Processes; 0: one per core. Of a fleet: 1: one for all browsers; more: one for each; 0: one for each if
            there is a core for each.
        timeout: Seconds for each creation and each run.
        session: Attributes of the `SessionOptions`.
        entries: Its configuration entries.
        dims: Numbers for dimensions of models that have a name.
        shapes: Shapes of inputs whose dimensions are open.
        feeds: Feeds in place of the cases' own inputs of these names.
        engine: The engine that runs the cases.
        kernels: Files of user kernels, for the processes that run the cases; this process has registered them.
        io_binding: Where tensors are, if the first provider has a device: "none" (fed and returned as arrays),
            "gpu-tensor" (inputs and outputs are tensors on it, made before the run) or "gpu-location" (inputs likewise,
            outputs are left there).
    """

    providers: tuple[str, ...] = DEFAULT
    skip_missing: bool = False
    fallback: bool = True
    browser: BrowserOptions = field(default_factory=BrowserOptions)
    fleet: tuple[BrowserOptions, ...] = ()
    jobs: int = 0
    timeout: float = 120.0
    session: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    feeds: Mapping[str, np.ndarray] = field(default_factory=dict)
    engine: str = OURS
    kernels: tuple[Path, ...] = ()
    io_binding: str = "none"

    def results(self, **fields: Any) -> Results:
        """Return results for this browser, engine and providers."""
        asked = f"{len(self.fleet)} remote" if self.fleet else self.browser.name
        return Results(providers=self.providers, asked=asked, engine=self.engine, **fields)


def run_cases(
    cases: Sequence[Case], options: RunnerOptions, progress: Callable[[int, int, int], None] = lambda *_: None
) -> Results:
    """Run cases; progress is called with (done, failed, total).

    Raises:
        NoAdapter, EPFail: The browser lacks a provider, and cases are not to be skipped for that.
        InvalidArgument: Two cases have one id.
    """
    if not cases:
        return options.results()
    check_ids(cases)
    jobs = min(options.jobs or os.cpu_count() or 1, -(-len(cases) // _CHUNK) or 1)
    try:
        # Several processes have browsers of their own: this one's is not needed after that.
        browser = options.browser if jobs <= 1 else replace(options.browser, idle_timeout=0.0)
        results = try_providers(options, browser)
    except EPFail as missing:
        return skipped(cases, options, missing)
    failed = 0
    with closing(_outcomes(cases, options, jobs)) as outcomes:  # an interrupt here ends the processes, too
        for name, outcome in outcomes:
            results.cases[name] = outcome
            failed += outcome.status == FAILED
            progress(len(results.cases), failed, len(cases))
    return results


def check_ids(cases: Sequence[Case]) -> None:
    """See that cases have ids of their own.

    Raises:
        InvalidArgument: Two have one.
    """
    for name, count in Counter(case.id for case in cases).most_common(1):
        if count > 1:
            raise InvalidArgument(f"{count} cases are called {name!r}: one's result would hide the others'")


def skipped(cases: Sequence[Case], options: RunnerOptions, missing: EPFail) -> Results:
    """Return results of cases that are not run, as the browser lacks a provider.

    Raises:
        EPFail: `missing`, if the options do not skip such cases.
    """
    if not options.skip_missing:
        raise missing
    return options.results(cases={case.id: Outcome(SKIPPED, case.skip or missing.message) for case in cases})


def try_providers(options: RunnerOptions, browser: BrowserOptions) -> Results:
    """Open the providers; return results without cases, with a description of the browser.

    Raises:
        BrowserError, EPFail: The browser cannot be had, or lacks a provider.
    """
    return loop_thread().call(_try_providers(options, browser))


async def _try_providers(options: RunnerOptions, browser: BrowserOptions) -> Results:
    runtime = PageRuntime(await pool().acquire(browser), browser)
    try:
        await runtime.open(_wanted(options), options.timeout)
        launcher = runtime.lease.launcher
        return options.results(
            browser=launcher.description,
            adapter=runtime.adapter,
            system=launcher.system,
        )
    finally:
        runtime.release()


def _wanted(options: RunnerOptions) -> Wanted:
    return resolve(options.providers, entries={REQUIRE: "1"})


def _outcomes(cases: Sequence[Case], options: RunnerOptions, jobs: int) -> Generator[tuple[str, Outcome], None, None]:
    if jobs <= 1:
        for case in cases:
            yield case.id, run_case(case, options)
        return
    with WorkerPool(jobs, options.kernels) as pool:
        chunks = [cases[i : i + _CHUNK] for i in range(0, len(cases), _CHUNK)]
        for done in as_completed([pool.submit(_run_chunk, chunk, options) for chunk in chunks]):
            yield from done.result()


def _run_chunk(cases: Sequence[Case], options: RunnerOptions) -> list[tuple[str, Outcome]]:
    return [(case.id, run_case(case, options)) for case in cases]


def run_case(case: Case, options: RunnerOptions, passed_on: tuple[type[PyOrtError], ...] = ()) -> Outcome:
    """Run one case: one session, all its data sets.

    Args:
        case: The case.
        options: How.
        passed_on: Errors that are raised, and are no failure of the case.
    """
    if case.skip:
        return Outcome(SKIPPED, case.skip)
    if case.trouble:
        return Outcome(FAILED, case.trouble)
    began = time.perf_counter()
    outcome = Outcome(PASSED)
    try:
        outcome.reason = _run(case, options, outcome)
    except passed_on:
        raise
    except PyOrtError as e:
        outcome.reason = f"{type(e).__name__}: {e}"
    except Exception as e:  # a bug of ours: one failed case, not the end of the run
        outcome.reason = f"{type(e).__name__} in Python: {e}"
    if outcome.reason:
        outcome.status = FAILED
    outcome.seconds = round(time.perf_counter() - began, 4)
    return outcome


def _run(case: Case, options: RunnerOptions, outcome: Outcome) -> str:
    settings = SessionOptions()
    settings.log_severity_level = 4
    settings.add_session_config_entry("session.plan_cache", "0")  # hardly any of these models comes again
    settings.add_session_config_entry(REQUIRE, "1")
    settings.create_timeout = settings.run_timeout = options.timeout
    for name, value in options.session.items():
        setattr(settings, name, value)
    for name, entry in options.entries.items():
        settings.add_session_config_entry(name, entry)
    for name, size in options.dims.items():
        settings.add_free_dimension_override_by_name(name, size)
    for name, shape in options.shapes.items():
        settings.add_input_shape(name, shape)
    if not options.fallback:
        settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if not case.data_sets:
        return "there are no data sets, so there is nothing to compare"
    tolerance = case.tolerance_on(canonical_provider(options.providers[0]))
    providers = list(options.providers)
    with InferenceSession(case.model, settings, providers, browser=options.browser, engine=options.engine) as session:
        # Other engines do not list nodes.
        placement = session.placement() if options.engine == OURS else Placement()
        outcome.providers = placement.counts()
        if not options.fallback and placement.nodes and not placement.on_first():
            why = ", ".join(dict.fromkeys(f"{node.op_type}: {node.reason}" for node in placement.nodes))
            return f"no node runs on {placement.providers[0]}: {why}"
        names = [arg.name for arg in session.get_outputs()]
        own = {arg.name: options.feeds[arg.name] for arg in session.get_inputs() if arg.name in options.feeds}
        for number, data in enumerate(case.data_sets):
            got = run_once(session, replace(data, feeds={**data.feeds, **own}), options.io_binding)
            for name, a, b in zip(data.names or names, got, data.outputs, strict=True):
                if found := difference(a, b, tolerance):
                    return f"wrong output: {name}{f' of data set {number}' if number else ''}: {found}"
    return ""


def run_once(session: InferenceSession, data: DataSet, io_binding: str = "none") -> list[Any]:
    """Run a session on one data set and return its outputs, as arrays; for `io_binding` see `RunnerOptions`."""
    names = list(data.names) or [arg.name for arg in session.get_outputs()]
    first = PROVIDERS[canonical_provider(session.get_providers()[0])]
    if io_binding == "none" or not first.on_device:
        return session.run(names, data.feeds)
    binding = session.io_binding()
    for name, value in data.feeds.items():
        if _may_be_on(first, value):
            tensor = session.create_ortvalue_from_shape_and_type(value.shape, value.dtype, first.device_name)
            tensor.update_inplace(value)
            binding.bind_ortvalue_input(name, tensor)
        else:
            binding.bind_ortvalue_input(name, OrtValue(value))
    for name, value in zip(names, data.outputs, strict=True):
        if not _may_be_on(first, value):
            binding.bind_output(name)
        elif io_binding == "gpu-tensor":
            tensor = session.create_ortvalue_from_shape_and_type(value.shape, value.dtype, first.device_name)
            binding.bind_ortvalue_output(name, tensor)
        else:
            binding.bind_output(name, first.device_name)
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


def _may_be_on(provider: Provider, value: Any) -> bool:
    """Return True for a tensor of a type that can be on a provider's device."""
    return isinstance(value, np.ndarray) and value.dtype.name in provider.elements

"""The steps from a model and its options to a session in a page: browser, providers, compiler, plan."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from py_ort.boundary import typed_errors
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread
from py_ort.compiler.plan.cache import PlanCache
from py_ort.compiler.saved.target import SavedModel
from py_ort.exceptions import (
    BrowserError,
    InvalidArgument,
    ModelLoadCanceled,
    OutOfMemory,
    PyOrtError,
    WorkerEnded,
)
from py_ort.log import SessionLog
from py_ort.profiling.account import Account
from py_ort.providers import with_cpu
from py_ort.runtime.compiling import compile_options
from py_ort.runtime.model_changes import ModelChanges
from py_ort.runtime.opened import Opened
from py_ort.runtime.options import GraphOptimizationLevel, SessionOptions
from py_ort.runtime.packaged import PackagedPlans
from py_ort.runtime.page_share import PageShare
from py_ort.runtime.planning import Planned, Planner
from py_ort.runtime.session_model import Origin
from py_ort.runtime.shape_plans import ENTRY as SHAPES_ENTRY
from py_ort.runtime.shape_plans import ShapePlans, worthwhile
from py_ort.runtime.tile_tables import tiles_for
from py_ort.uninterrupted import check, uninterrupted
from py_ort.wire.json_fields import SessionInfo
from py_ort.wire.json_fields import SessionOptions as PageOptions

if TYPE_CHECKING:
    from py_ort.providers import Placement
    from py_ort.runtime.loaded import Loaded
    from py_ort.runtime.page_runtime import PageRuntime


AnyPlanner: TypeAlias = "Planner | PackagedPlans"
Providers: TypeAlias = "Sequence[str | tuple[str, Mapping[str, Any]]]"
Progress: TypeAlias = "Callable[[str, int, int], None]"
_Create: TypeAlias = "Callable[[Planned], Loaded]"


@dataclass
class SessionCreation:
    """All steps before the first run of a session; see `InferenceSession` for arguments and errors.

    Attributes:
        origin: The model.
        options: Options of the session.
        providers: The requested providers, and options for each.
        browser: Options of the browser.
        progress: Receives the current step.
        log: The session's log.
        changes: Changes to make to the model.
    """

    origin: Origin
    options: SessionOptions
    providers: tuple[Providers | None, Sequence[Mapping[str, Any]] | None]
    browser: BrowserOptions
    progress: Progress
    log: SessionLog
    changes: ModelChanges
    _phases: list[tuple[str, float]] = field(default_factory=list)

    def open(self) -> Opened:
        """Return the opened session; if a step fails or is interrupted, everything is released."""
        return uninterrupted(self._open, Opened.release)

    def _stage(self, name: str) -> None:
        check()
        self._phases.append((name, time.perf_counter()))
        if self.options._load_cancelled[0]:
            raise ModelLoadCanceled(f"set_load_cancellation_flag was called; next would have been {name}")
        self.progress(name, 0, 0)

    def _open(self) -> Opened:
        began = time.perf_counter()
        # The browser starts while this thread imports the compiler and reads the model.
        page = PageShare(self.browser, self.options, self.log)
        try:
            runtime, planner = self._begin(page)
            made = self._load(runtime, planner, began, page.waited)
            check()
        except BaseException:
            page.give_back()
            raise
        return made

    def place(self) -> Placement:
        """Return where nodes would run; the page opens the providers, and gets no model.

        Raises:
            PyOrtError: As `open` does.
        """
        page = PageShare(self.browser, self.options, self.log)
        try:
            runtime, planner = self._begin(page)
            self._stage("compiling the model")
            planned = planner.plan(with_cpu(*runtime.providers), compile_options(runtime.options, self.options))
            return replace(planned.placement, left_out=dict(runtime.dropped))
        finally:
            page.give_back()

    def _begin(self, page: PageShare) -> tuple[PageRuntime, AnyPlanner]:
        """Read the model and open the providers; return the share of the page with them, and the model's planner."""
        from py_ort.providers.resolution import resolve

        wanted = resolve(*self.providers, self.options.config_entries)
        planner = self._planner()
        self._stage("reading the model")
        planner.expect(with_cpu(*wanted.providers), compile_options(wanted.providers, self.options))
        self._stage("starting the browser")
        runtime = page.open(wanted)
        if isinstance(planner, Planner):
            planner.devices = runtime.devices_to_ask()
        return runtime, planner

    def _load(self, runtime: PageRuntime, planner: AnyPlanner, began: float, waited: float) -> Opened:
        """Compile the model and load it into the page.

        Args:
            runtime: A share of the page.
            planner: Makes the plan.
            began: Time of the request for the session, by `time.perf_counter`.
            waited: Seconds since then that were spent waiting for the browser.
        """
        options = self.options
        level = int(options.graph_optimization_level)
        saved = SavedModel.of(options.optimized_model_filepath, options.config_entries, level)
        names, settled = with_cpu(*runtime.providers), compile_options(runtime.options, options)
        tiles = tiles_for(options.config_entries, runtime)  # first, because a wrong entry is not the plan's fault
        self._stage("compiling the model")
        compiling = time.perf_counter()
        compiled = planner.plan(names, settled, saved)
        compiled_at = time.perf_counter()
        self._stage("loading it into the page")
        try:
            session, created = _load_into_page(runtime, compiled, options, tiles, self.progress)
        except PyOrtError as e:  # from the page, which may refuse a plan; other errors are the user's own
            if isinstance(e, (BrowserError, OutOfMemory)) or not planner.reject(compiled, e):
                raise
            self._stage("compiling the model")
            compiled = planner.plan(names, settled, saved)
            self._stage("loading it into the page")
            session, created = _load_into_page(runtime, compiled, options, tiles, self.progress)
        planner.store()
        shape_plans = _shape_plans(
            planner, compiled, runtime, options, lambda planned: _load_into_page(runtime, planned, options, tiles)[0]
        )

        def load_again() -> tuple[Loaded, SessionInfo]:
            self.log.info("the session is loaded again, into another worker")
            with typed_errors("opening the providers"):
                loop_thread().call(runtime.reopen(options.create_timeout))
            tiles = tiles_for(options.config_entries, runtime)
            loaded = _load_into_page(runtime, planner.plan(names, settled), options, tiles)
            planner.store()
            return loaded

        return Opened(
            runtime,
            session,
            load_again,
            names,
            compiled.inputs,
            compiled.outputs,
            compiled.overridable,
            compiled.metadata,
            replace(compiled.placement, left_out=dict(runtime.dropped)),
            created,
            {
                "browser_ms": waited * 1000,
                "create_ms": (time.perf_counter() - began - waited) * 1000,
                "compile_ms": (compiled_at - compiling) * 1000,
            },
            shape_plans,
            Account(tuple(self._phases), time.perf_counter(), getattr(compiled, "timings", {})),
        )

    def _planner(self) -> AnyPlanner:
        from py_ort.compiler.package.format import is_package

        if is_package(self.origin.source):
            return PackagedPlans(self.origin, self.changes, self.log)
        cache = _plan_cache(self.options, self.changes)
        return Planner(self.origin, self.changes, cache, self.options.create_timeout)


def _plan_cache(options: SessionOptions, changes: ModelChanges) -> PlanCache | None:
    """Return the cache of plans; None for changed models, whose file is not all of them, and for models to write."""
    if changes or options.optimized_model_filepath or options.config_entries.get("session.plan_cache", "1") == "0":
        return None
    return PlanCache.default()


def _load_into_page(
    runtime: PageRuntime,
    compiled: Planned,
    options: SessionOptions,
    tiles: Mapping[str, str] | None,
    progress: Progress = lambda stage, done, total: None,
) -> tuple[Loaded, SessionInfo]:
    while True:
        with typed_errors("loading the plan into the page"):
            trace = options.enable_profiling or os.environ.get("PY_ORT_TRACE", "0") not in ("", "0")
            asked: PageOptions = {"threads": options.intra_op_num_threads, "trace": trace, "scope": compiled.scope}
            if tiles is not None:
                asked["tiles"] = tiles
            loading = runtime.load(
                compiled.plan, compiled.parts(), asked, compiled.placement.device(), timeout=options.create_timeout
            )
        with loading:
            for report in loading.reports():
                progress(report.stage, report.done, report.total)
            try:
                return loading.result()
            except WorkerEnded:  # because of another session
                pass
        with typed_errors("opening the providers"):
            loop_thread().call(runtime.reopen(options.create_timeout))


def _shape_plans(
    planner: AnyPlanner, compiled: Planned, runtime: PageRuntime, options: SessionOptions, create: _Create
) -> ShapePlans | None:
    mode = options.config_entries.get(SHAPES_ENTRY, "1")
    if mode not in ("0", "1", "first"):
        raise InvalidArgument(f'{SHAPES_ENTRY} is "0", "1" or "first", not {mode!r}')
    level = options.graph_optimization_level
    if mode == "0" or runtime.captures or level != GraphOptimizationLevel.ORT_ENABLE_ALL:
        return None
    if isinstance(planner, PackagedPlans):
        if not planner.has_shapes():
            return None
        mode = "first"  # the plans exist already
    elif not worthwhile(compiled.inputs, compiled):
        return None
    settled = compile_options(runtime.options, options)
    return ShapePlans(planner, with_cpu(*runtime.providers), settled, create, runtime.release_session, mode)

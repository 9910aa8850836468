"""From a model and its options to a session in a page: browser, providers, compiler, plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from py_ort.browser.loop import loop_thread
from py_ort.browser.options import BrowserOptions
from py_ort.browser.pool import Lease, pool
from py_ort.exceptions import ModelLoadCanceled
from py_ort.model_changes import ModelChanges
from py_ort.options import SessionOptions
from py_ort.plan.cache import PlanCache
from py_ort.planning import Planned, Planner, Source
from py_ort.session_log import SessionLog

if TYPE_CHECKING:
    from py_ort.browser.backend import Backend
    from py_ort.load import ModelMetadata
    from py_ort.plan import CompileOptions, NodeArg
    from py_ort.providers import Placement

Providers: TypeAlias = "Sequence[str | tuple[str, Mapping[str, Any]]]"
Progress: TypeAlias = "Callable[[str, int, int], None]"


@dataclass
class Opened:
    """A model that is ready to run in a page. The model itself and its weights are there, and no longer here.

    Attributes:
        backend: Its share of the page.
        providers: Those that may run its nodes, best first.
        created: The page's account of the session's creation.
        times: `create_ms` and `compile_ms`, as seen from here.
    """

    backend: Backend
    providers: list[str]
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    overridable: list[NodeArg]
    metadata: ModelMetadata
    placement: Placement
    created: dict[str, Any]
    times: dict[str, float]


def open_session(
    source: Source,
    options: SessionOptions,
    providers: Providers | None,
    provider_options: Sequence[Mapping[str, Any]] | None,
    browser: BrowserOptions,
    progress: Progress,
    log: SessionLog,
    changes: ModelChanges,
) -> Opened:
    """Do all that comes before the first run; see `InferenceSession` for arguments and errors."""

    def stage(name: str) -> None:
        if options._load_cancelled[0]:
            raise ModelLoadCanceled(f"set_load_cancellation_flag was called; next would have been {name}")
        progress(name, 0, 0)

    began = time.perf_counter()
    # The browser starts while this thread imports the compiler and reads the model.
    lease = loop_thread().submit(_acquire(browser))
    backend: Backend | None = None
    try:
        from py_ort.browser.backend import Backend
        from py_ort.providers.resolution import resolve

        wanted = resolve(providers, provider_options)
        planner = Planner(source, changes, _plan_cache(options, changes))
        stage("reading the model")
        planner.expect(_with_wasm(wanted.providers), _compile_options(wanted.providers, options))
        stage("starting the browser")
        backend = loop_thread().call(Backend.open(lease.result(), wanted, options.create_timeout, log))
        stage("compiling the model")
        compiling = time.perf_counter()
        names = _with_wasm(backend.providers)
        compiled = planner.plan(names, _compile_options(backend.options, options))
        compiled_at = time.perf_counter()
        stage("loading it into the page")
        created = _load_into_page(backend, compiled, options, progress)
        planner.store()
    except BaseException:
        _give_back(backend, lease)
        raise
    times = {"create_ms": (time.perf_counter() - began) * 1000, "compile_ms": (compiled_at - compiling) * 1000}
    return Opened(
        backend,
        names,
        compiled.inputs,
        compiled.outputs,
        compiled.overridable,
        compiled.metadata,
        compiled.placement,
        created,
        times,
    )


def _with_wasm(names: Iterable[str]) -> list[str]:
    """As in onnxruntime, the CPU takes what is left even when it is not named."""
    return list(dict.fromkeys([*names, "wasm"]))


def _plan_cache(options: SessionOptions, changes: ModelChanges) -> PlanCache | None:
    """Models that are changed are not kept: what they compute is not told by their file."""
    if changes or options.config_entries.get("session.plan_cache", "1") == "0":
        return None
    return PlanCache.default()


def _compile_options(providers: Mapping[str, Mapping[str, Any]], options: SessionOptions) -> CompileOptions:
    from py_ort.plan.options import CompileOptions

    webgpu = providers.get("webgpu", {})
    forced = webgpu.get("forceCpuNodeNames", ())
    return CompileOptions(
        graph_optimization_level=int(options.graph_optimization_level),
        free_dimension_overrides=options.free_dimensions_by_name,
        free_dimension_overrides_by_denotation=options.free_dimensions_by_denotation,
        preferred_layout=webgpu.get("preferredLayout"),
        force_cpu_node_names=forced.split("\n") if isinstance(forced, str) else forced,
        disable_cpu_fallback=options.config_entries.get("session.disable_cpu_ep_fallback") == "1",
    )


def _load_into_page(backend: Backend, compiled: Planned, options: SessionOptions, progress: Progress) -> dict[str, Any]:
    return backend.create(
        compiled.plan,
        compiled.parts(),
        {},
        timeout=options.create_timeout,
        progress=lambda report: progress(report.stage, report.done, report.total),
    )


async def _acquire(options: BrowserOptions) -> Lease:
    return await pool().acquire(options)


def _give_back(backend: Backend | None, lease: Future[Lease]) -> None:
    if backend is not None:
        backend.release()
    elif not lease.cancel():
        lease.add_done_callback(_release)


def _release(lease: Future[Lease]) -> None:
    if lease.exception() is None:
        loop_thread().soon(lambda: pool().release(lease.result()))

"""From a model and its options to a session in a page: browser, providers, compiler, plan."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from py_ort.browser.loop import loop_thread
from py_ort.browser.options import BrowserOptions
from py_ort.browser.pool import Lease, pool
from py_ort.exceptions import InvalidArgument
from py_ort.options import LEVELS, SessionOptions
from py_ort.ort_value import OrtValue

if TYPE_CHECKING:
    from py_ort.browser.backend import Backend
    from py_ort.load import LoadedModel, ModelMetadata
    from py_ort.plan import CompiledModel, CompileOptions, NodeArg
    from py_ort.providers import Placement

_log = logging.getLogger("py_ort")

Source: TypeAlias = "str | os.PathLike[str] | bytes"
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
) -> Opened:
    """Do all that comes before the first run; see `InferenceSession` for arguments and errors."""
    _warn_of_options(options)
    began = time.perf_counter()
    # The browser starts while this thread imports the compiler and reads the model.
    lease = loop_thread().submit(_acquire(browser))
    backend: Backend | None = None
    try:
        from py_ort.browser.backend import Backend
        from py_ort.load import load_model
        from py_ort.plan import compile_model
        from py_ort.providers.resolution import resolve

        wanted = resolve(providers, provider_options)
        progress("reading the model", 0, 0)
        loaded = load_model(source)
        _set_initializers(loaded, options.initializers)
        progress("starting the browser", 0, 0)
        backend = loop_thread().call(Backend.open(lease.result(), wanted, options.create_timeout))
        progress("compiling the model", 0, 0)
        compiling = time.perf_counter()
        # As in onnxruntime, the CPU takes what is left even when it is not named.
        names = list(dict.fromkeys([*backend.providers, "wasm"]))
        compiled = compile_model(loaded, providers=names, options=_compile_options(backend, options))
        compiled_at = time.perf_counter()
        progress("loading it into the page", 0, 0)
        created = _load_into_page(backend, compiled, options, progress)
    except BaseException:
        _give_back(backend, lease)
        raise
    times = {"create_ms": (time.perf_counter() - began) * 1000, "compile_ms": (compiled_at - compiling) * 1000}
    return Opened(
        backend,
        names,
        compiled.inputs,
        compiled.outputs,
        compiled.metadata,
        compiled.placement,
        created,
        times,
    )


def _compile_options(backend: Backend, options: SessionOptions) -> CompileOptions:
    from py_ort.plan import CompileOptions

    webgpu = backend.options.get("webgpu", {})
    forced = webgpu.get("forceCpuNodeNames", ())
    return CompileOptions(
        graph_optimization_level=int(options.graph_optimization_level),
        free_dimension_overrides=options.free_dimensions_by_name,
        free_dimension_overrides_by_denotation=options.free_dimensions_by_denotation,
        preferred_layout=webgpu.get("preferredLayout"),
        force_cpu_node_names=forced.split("\n") if isinstance(forced, str) else forced,
        disable_cpu_fallback=options.config_entries.get("session.disable_cpu_ep_fallback") == "1",
    )


def _load_into_page(
    backend: Backend, compiled: CompiledModel, options: SessionOptions, progress: Progress
) -> dict[str, Any]:
    return backend.create(
        compiled.plan,
        compiled.weights.buffers(),
        {},
        timeout=options.create_timeout,
        progress=lambda report: progress(report.stage, report.done, report.total),
    )


def _set_initializers(loaded: LoadedModel, values: Mapping[str, Any]) -> None:
    """Give initializers of the model other contents (`SessionOptions.add_initializer`)."""
    import onnx_ir

    known = loaded.model.graph.initializers
    for name, value in values.items():
        if name not in known:
            raise InvalidArgument(f"the model has no initializer {name!r}")
        array = value.numpy() if isinstance(value, OrtValue) else np.asarray(value)
        known[name].const_value = onnx_ir.tensor(array, name=name)


def _warn_of_options(options: SessionOptions) -> None:
    """Say which options do nothing here, as far as the options' own log level allows."""
    severity = options.log_severity_level
    if names := options.changed_without_effect():
        level = logging.WARNING if severity < 0 or LEVELS[severity] <= logging.WARNING else logging.DEBUG
        _log.log(level, "session options without effect in a browser: %s", ", ".join(names))


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

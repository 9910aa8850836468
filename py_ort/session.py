"""`InferenceSession`: a model, compiled here, that runs in a browser's page."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.browser.loop import loop_thread
from py_ort.browser.options import BrowserOptions
from py_ort.browser.pool import Lease, pool
from py_ort.exceptions import Cancelled, InvalidArgument, PyOrtError
from py_ort.feeds import as_feed, check_feed, check_names
from py_ort.options import LEVELS, RunOptions, SessionOptions
from py_ort.ort_value import IOBinding, OrtValue

if TYPE_CHECKING:
    from py_ort.browser.backend import Backend
    from py_ort.load import LoadedModel, ModelMetadata
    from py_ort.plan import CompiledModel, CompileOptions, NodeArg
    from py_ort.providers import Placement

_log = logging.getLogger("py_ort")

Providers = Sequence[str | tuple[str, Mapping[str, Any]]]


class InferenceSession:
    """Loads a model and runs it in a browser, with onnxruntime's methods.

    What happens: the browser starts (or is shared with other sessions) while Python reads and checks the model; each
    provider of the list is opened in the page; Python optimises the model, places every node on a provider and writes a
    plan; the page loads the plan and its weights; `run` sends feeds and gets outputs.

    Args:
        path_or_bytes: An ONNX file, or its bytes.
        sess_options: See `SessionOptions`.
        providers: Execution providers, best first: names, or pairs of a name and its options. Default: "webgpu", then
            "wasm". One that cannot run in this browser is left out with a warning.
        provider_options: Options for each of `providers`, as dicts.
        browser: Which browser; see `BrowserOptions`. Default: "chromium".
        launcher: "playwright" or "process"; default: what suits the browser.
        progress: Called with (stage, done, total) while the session is made.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: The model cannot be used; the message says why.
        BrowserNotFound, BrowserCrashed, Timeout: There is no browser to run it in.
        NoAdapter, EPFail: None of the providers can run in this browser.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        browser: str | BrowserOptions | None = None,
        launcher: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._backend: Backend | None = None
        self._options = sess_options or SessionOptions()
        self._progress = progress or (lambda stage, done, total: None)
        self._times: dict[str, float] = {}
        self._last_run: dict[str, Any] = {}
        self._warn_of_options()
        began = time.perf_counter()
        # The browser starts while this thread imports the compiler and reads the model.
        lease = loop_thread().submit(_acquire(BrowserOptions.of(browser, launcher)))
        try:
            compiled = self._prepare(path_or_bytes, providers, provider_options, lease)
            self._created = self._load_into_page(compiled)
        except BaseException:
            self._give_back(lease)
            raise
        self._times["create_ms"] = (time.perf_counter() - began) * 1000
        # Not the model and its weights: the page has them now.
        self._inputs, self._outputs = compiled.inputs, compiled.outputs
        self._metadata, self._placement = compiled.metadata, compiled.placement
        _log.info("%s", self)

    def _prepare(
        self,
        source: str | os.PathLike[str] | bytes,
        providers: Providers | None,
        provider_options: Sequence[Mapping[str, Any]] | None,
        lease: Future[Lease],
    ) -> CompiledModel:
        """Read the model, open the providers, compile the one for the others."""
        from py_ort.browser.backend import Backend
        from py_ort.load import load_model
        from py_ort.plan import compile_model
        from py_ort.providers.resolution import resolve

        wanted = resolve(providers, provider_options)
        self._progress("reading the model", 0, 0)
        loaded = load_model(source)
        _set_initializers(loaded, self._options.initializers)
        self._progress("starting the browser", 0, 0)
        opening = Backend.open(lease.result(), wanted, self._options.create_timeout)
        self._backend = loop_thread().call(opening)
        self._progress("compiling the model", 0, 0)
        began = time.perf_counter()
        providers = self._compile_providers()
        compiled = compile_model(loaded, providers=providers, options=self._compile_options())
        self._times["compile_ms"] = (time.perf_counter() - began) * 1000
        return compiled

    def _compile_providers(self) -> list[str]:
        """The providers that may run nodes: as in onnxruntime, the CPU takes what is left even when it is not named."""
        return list(dict.fromkeys([*self._open_backend().providers, "wasm"]))

    def _compile_options(self) -> CompileOptions:
        from py_ort.plan import CompileOptions

        backend, options = self._open_backend(), self._options
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

    def _load_into_page(self, compiled: CompiledModel) -> dict[str, Any]:
        self._progress("loading it into the page", 0, 0)
        assert self._backend is not None
        return self._backend.create(
            compiled.plan,
            compiled.weights.buffers(),
            {},
            timeout=self._options.create_timeout,
            progress=lambda report: self._progress(report.stage, report.done, report.total),
        )

    def _give_back(self, lease: Future[Lease]) -> None:
        if self._backend is not None:
            self._backend.release()
        elif not lease.cancel():
            lease.add_done_callback(_release)

    # --- running

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run the model.

        Args:
            output_names: Outputs wanted, in this order; None or empty: all.
            input_feed: By the name of the input: arrays (or `OrtValue`s, or lists that numpy understands); for a
                sequence a list of them; for an optional the element, or None (or no feed) for one without.
            run_options: See `RunOptions`.

        Returns:
            The outputs: arrays, lists of arrays for sequences, None for optionals without an element.

        Raises:
            InvalidArgument: A feed or an output name does not fit the model; names it, what was expected and what came.
            RuntimeException: A kernel failed on these inputs.
            Cancelled: `run_options.terminate` was set.
            BrowserCrashed, PageCrashed, ConnectionLost, Timeout: The page is gone, or took too long.
        """
        names = self._output_names(output_names)
        return self._run(names, input_feed, run_options)

    def _run(
        self,
        names: list[str],
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        on_gpu: Collection[str] = (),
    ) -> list[Any]:
        """Run the model; outputs named in `on_gpu` stay there, as `DeviceTensor`s."""
        backend = self._open_backend()
        check_names(self._inputs, input_feed)
        feeds, types = {}, {}
        for arg in self._inputs:
            types[arg.name] = arg.type
            feeds[arg.name] = as_feed(arg.name, input_feed.get(arg.name), arg.type, backend.lease.page)
            check_feed(arg, feeds[arg.name])
        options = run_options or RunOptions()
        if options.terminate:
            raise Cancelled("run_options.terminate is set")
        timeout = options.timeout if options.timeout is not None else self._options.run_timeout
        cancels: list[Callable[[], Any]] = []

        def started(future: Future[Any]) -> None:
            cancels.append(future.cancel)
            options._cancel.append(future.cancel)

        try:
            results, self._last_run = backend.run(names, feeds, types, on_gpu=on_gpu, timeout=timeout, started=started)
            self._times.setdefault("first_run_ms", self._last_run["total_ms"])
        except CancelledError:
            raise Cancelled("the run was ended by run_options.terminate") from None
        finally:
            for cancel in cancels:
                options._cancel.remove(cancel)
        return results

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None] | None = None,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> asyncio.Future[list[Any]] | Future[list[Any]]:
        """Start a run and return at once.

        Args:
            output_names: As for `run`.
            input_feed: As for `run`.
            callback: If given, called in another thread with (outputs, user_data, error text or "").
            user_data: Passed to it.
            run_options: As for `run`.

        Returns:
            A future of the outputs: inside a running asyncio loop one to await, else a `concurrent.futures.Future`.
        """
        future = _in_thread(lambda: self.run(output_names, input_feed, run_options))
        if callback is not None:

            def tell(done: Future[list[Any]]) -> None:
                error = done.exception()
                callback([] if error else done.result(), user_data, str(error) if error else "")

            future.add_done_callback(tell)
        try:
            return asyncio.wrap_future(future, loop=asyncio.get_running_loop())
        except RuntimeError:
            return future

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run the model on `OrtValue`s; return `OrtValue`s."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """Return an empty binding of this session's inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run the model on what is bound."""
        iobinding.run(run_options)

    # --- asking

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return list(self._outputs)

    def get_modelmeta(self) -> ModelMetadata:
        """Return what the model says of itself."""
        return self._metadata

    def get_providers(self) -> list[str]:
        """Return the providers of this session, onnxruntime's names, best first."""
        from py_ort.providers import onnxruntime_name

        return [onnxruntime_name(name) for name in self._compile_providers()]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the providers' options, by onnxruntime's names."""
        assert self._backend is not None
        options = self._backend.options
        from py_ort.providers import onnxruntime_name

        return {
            onnxruntime_name(name): {key: str(value) for key, value in options.get(name, {}).items()}
            for name in self._compile_providers()
        }

    def get_session_options(self) -> SessionOptions:
        """Return the options that this session was made with."""
        return self._options

    def placement(self) -> Placement:
        """Return which node runs on which provider, and why. Prints as a table."""
        return self._placement

    def stats(self) -> dict[str, Any]:
        """Return times and counters.

        Keys: `create_ms`, `compile_ms` and `first_run_ms` as seen from here; `created`: the page's account of creation;
        `last_run`: its account of the last run (times, counters, whether it was replayed) and `total_ms`, seen from
        here; `session`: its recordings and memory; `page`: counters and memory of the whole page.
        """
        backend = self._open_backend()
        return {
            **self._times,
            "created": self._created,
            "last_run": dict(self._last_run),
            "session": backend.stats(backend.session),
            "page": backend.stats(0),
        }

    @property
    def browser(self) -> str:
        """The browser and its version."""
        return self._backend.lease.launcher.description if self._backend else ""

    @property
    def adapter(self) -> str:
        """The WebGPU adapter, in words; "" without WebGPU."""
        return self._backend.adapter if self._backend else ""

    # --- ending

    def close(self) -> None:
        """Release the session in the page. The browser goes some time after its last session."""
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.release()

    def __enter__(self) -> InferenceSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_backend", None) is not None:
            self.close()

    def __repr__(self) -> str:
        if self._backend is None:
            return "<InferenceSession, closed>"
        counts = ", ".join(f"{n} nodes on {provider}" for provider, n in self.placement().counts().items())
        return f"<InferenceSession {self._metadata.graph_name!r}: {counts}; {self.browser}>"

    # --- helpers

    def _open_backend(self) -> Backend:
        if self._backend is None:
            raise PyOrtError("this session is closed")
        return self._backend

    def _output_names(self, wanted: Sequence[str] | None) -> list[str]:
        names = [arg.name for arg in self._outputs]
        if unknown := [name for name in wanted or () if name not in names]:
            raise InvalidArgument(f"the model has no output {unknown[0]!r}: it has {', '.join(map(repr, names))}")
        return list(wanted) if wanted else names

    def _warn_of_options(self) -> None:
        """Say which options do nothing here, as far as the options' own log level allows."""
        severity = self._options.log_severity_level
        if names := self._options.changed_without_effect():
            level = logging.WARNING if severity < 0 or LEVELS[severity] <= logging.WARNING else logging.DEBUG
            _log.log(level, "session options without effect in a browser: %s", ", ".join(names))


def _set_initializers(loaded: LoadedModel, values: Mapping[str, Any]) -> None:
    """Give initializers of the model other contents (`SessionOptions.add_initializer`)."""
    import onnx_ir

    known = loaded.model.graph.initializers
    for name, value in values.items():
        if name not in known:
            raise InvalidArgument(f"the model has no initializer {name!r}")
        known[name].const_value = onnx_ir.tensor(_as_array(value), name=name)


async def _acquire(options: BrowserOptions) -> Lease:
    return await pool().acquire(options)


def _release(lease: Future[Lease]) -> None:
    if lease.exception() is None:
        loop_thread().soon(lambda: pool().release(lease.result()))


def _as_array(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, OrtValue) else np.asarray(value)


def _in_thread(work: Callable[[], list[Any]]) -> Future[list[Any]]:
    """Run something in a thread of its own, whose number is not limited: each only waits for the page."""
    import threading

    future: Future[list[Any]] = Future()

    def target() -> None:
        try:
            future.set_result(work())
        except BaseException as e:
            future.set_exception(e)

    threading.Thread(target=target, name="py_ort-run", daemon=True).start()
    return future

"""Questions to a session, the same for `InferenceSession` and `AsyncInferenceSession`, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from py_ort.boundary import public
from py_ort.exceptions import NotImplemented
from py_ort.providers import onnxruntime_name
from py_ort.runtime.engine import Engine
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.page_engine import PageEngine

if TYPE_CHECKING:
    from py_ort.compiler import NodeArg
    from py_ort.compiler.load import ModelMetadata
    from py_ort.providers import Placement
    from py_ort.runtime.opened import Opened


@public
class SessionBase:
    """A model that runs in a page, and questions about it.

    Args:
        engine: The loaded model; it is closed with the session.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        try:
            engine.log.info("%s", self)
        except BaseException:
            engine.close()
            raise

    def _offering(self, what: str) -> PageEngine:
        """Return the engine as py_ort's own, which offers all that sessions have.

        Raises:
            NotImplemented: It is another one.
        """
        if not isinstance(self._engine, PageEngine):
            raise NotImplemented(
                f"{what}: sessions of {self._engine.name} have not; leave engine= out for those of py_ort"
            )
        return self._engine

    @property
    def _opened(self) -> Opened | None:
        """The session in the page, for py_ort's own tools; None after the end."""
        return self._offering("this").opened

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs."""
        return list(self._engine.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return list(self._engine.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that may be fed: the model lists them as inputs, too.

        Runs that feed them use another session in the page, which the first such run creates.
        """
        return list(self._engine.overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """Return the model's metadata."""
        return self._engine.metadata

    def get_providers(self) -> list[str]:
        """Return the providers of this session, onnxruntime's names, best first."""
        return [onnxruntime_name(name) for name in self._engine.providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the providers' options, by onnxruntime's names."""
        from py_ort.providers.provider_options import all_options

        engine = self._offering("get_provider_options()")
        given = engine.sessions.main().runtime.options
        return {onnxruntime_name(name): all_options(name, given.get(name, {})) for name in engine.providers}

    def get_session_options(self) -> SessionOptions:
        """Return a copy of the options that this session was made with."""
        return self._engine.options._copy()

    def placement(self) -> Placement:
        """Return the provider of each node, with the reason. Prints as a table."""
        return self._offering("placement()").placement

    def stats(self) -> dict[str, Any]:
        """Return times and counters.

        Keys: measured in Python: `browser_ms` (waiting for the browser), `create_ms` (the rest of the creation),
        `compile_ms` and `first_run_ms`; `created`: the page's account of the creation; `shapes`: shapes with a plan of
        their own (see `py_ort.runtime.shape_plans`); `last_run`: the page's account of the last run (times, counters,
        true if replayed) with `total_ms`, measured in Python; `traffic`: bytes on the websocket so far; `session`:
        recordings and memory; `page`: counters and memory of the whole page.
        """
        return self._engine.stats()

    def memory(self) -> dict[str, dict[str, int]]:
        """Return the session's memory in the page, in bytes, by provider.

        For each provider: `weights`: constants, also in kernels' own form; `shared`: the part of `weights` that other
        sessions use, too; `arena`: memory for values between nodes, and for feeds and outputs that are not on the GPU;
        `peak`: the largest part of the arena in use at one time (an output in place of an input counts once). On wasm
        a run frees its memory, so both are equal; on the GPU the arena is kept for all shapes seen. Values of IO
        binding and idle buffers in caches belong to the page: see `stats()`.
        """
        return self._offering("memory()").memory()

    def end_profiling(self) -> str:
        """End the profile that `SessionOptions.enable_profiling` began, and write it as a Chrome trace.

        chrome://tracing and Perfetto load the file. On one clock it has the phases of the session's creation, and for
        each run the work of Python, the bridge, the worker, the nodes on the CPU and the GPU's kernels.

        Returns:
            The file's name, as onnxruntime chooses it: `profile_file_prefix`, date and time. "" if profiling was not
            enabled, or has ended.
        """
        return self._engine.end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """Return when profiling began, on the clock of `time.perf_counter_ns()`; 0 if it is not enabled."""
        profile = self._engine.profile
        return 0 if profile is None else profile.started_ns

    @property
    def browser(self) -> str:
        """The browser and its version."""
        return self._engine.browser

    @property
    def adapter(self) -> str:
        """The WebGPU adapter, in words; "" without WebGPU, or if the engine does not tell."""
        return self._engine.adapter

    # --- ending

    def close(self) -> None:
        """Release the session in the page; its open runs and generations end with `Cancelled`.

        A profile is written. The browser ends some time after its last session. In a forked child nothing happens.
        """
        self._engine.close()

    def __del__(self) -> None:
        if hasattr(self, "_engine"):
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object: it is in a browser; make one of the same model")

    def __copy__(self) -> Self:
        return self  # there is one session in the page, which ends with its last reference

    def _repr_html_(self) -> str:
        from py_ort.runtime.notebook import session_html

        return session_html(repr(self), self._engine)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{self._engine}>"

    def _output_types(self) -> dict[str, str]:
        return {arg.name: arg.type for arg in self._engine.outputs}

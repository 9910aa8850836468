"""What a session knows of itself; the same for `InferenceSession` and `AsyncInferenceSession`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Self

from py_ort.boundary import public, typed_errors
from py_ort.browser.options import BrowserOptions
from py_ort.browser.request import OTHER_PROCESS
from py_ort.compiler.load.files import DATA_FOLDER_ENTRY
from py_ort.exceptions import ConnectionLost, InvalidArgument, PyOrtError, WrongType
from py_ort.log import SessionLog
from py_ort.providers import onnxruntime_name
from py_ort.runtime.generation.model_folder import decoder_file
from py_ort.runtime.memory import memory_of
from py_ort.runtime.model_changes import ModelChanges, changes_of
from py_ort.runtime.opened import Opened
from py_ort.runtime.opening import Opening, Progress, Providers
from py_ort.runtime.options import RunOptions, SessionOptions
from py_ort.runtime.origin import Origin, Source
from py_ort.runtime.running import Run, output_names
from py_ort.runtime.values.feeds import check_mapping
from py_ort.runtime.values.ort_device import HEAP
from py_ort.runtime.values.output_location import OnGpu, OutputLocation, check_forms, impossible, preferred

if TYPE_CHECKING:
    from py_ort.browser.page import Page
    from py_ort.compiler import NodeArg
    from py_ort.compiler.load import ModelMetadata
    from py_ort.profiling import Profile
    from py_ort.providers import Placement
    from py_ort.runtime.generation.generation import Form, Start
    from py_ort.wire import Answer
    from py_ort.wire.json_fields import Timed


#: Of runs without options.
_DEFAULTS = RunOptions()


@public
class SessionBase:
    """A model in a page, and what may be asked of it.

    Args:
        source: An ONNX file, or its bytes.
        options: See `SessionOptions`.
        providers: Execution providers, best first; None: those of `options`, else WebGPU, then the CPU.
        provider_options: Options for each of `providers`, as dicts.
        browser: Where to run it.
        progress: Called with (stage, done, total) while the session is made.

    Raises:
        PyOrtError: As `InferenceSession` says.
    """

    def __init__(
        self,
        source: Source,
        options: SessionOptions | None,
        providers: Providers | None,
        provider_options: Sequence[Mapping[str, Any]] | None,
        browser: BrowserOptions,
        progress: Progress | None,
    ) -> None:
        if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
            raise WrongType(f"a model is the path of a file, or its bytes, not {type(source).__name__}")
        self._opened: Opened | None = None
        self._variants: dict[Any, Opened] = {}
        self._making_variant = Lock()
        self._last_run: dict[str, Any] = {}
        self._options = options._copy() if options else SessionOptions()
        self._origin = Origin(decoder_file(source), self._options.config_entries.get(DATA_FOLDER_ENTRY, ""))
        self._browser = browser
        self._log = SessionLog(self._options.log_severity_level, self._options.logid)
        if names := self._options.changed_without_effect():
            self._log.warning("session options without effect in a browser: %s", ", ".join(names))
        if providers is None and self._options.has_providers():
            providers = list(self._options._providers.items())
        self._profile = _profile(self._options)
        try:
            self._open_with(providers, provider_options, progress)
            self._log.info("%s", self)
        except BaseException:
            self._release()
            raise

    def _open_with(
        self,
        providers: Providers | None,
        provider_options: Sequence[Mapping[str, Any]] | None,
        progress: Progress | None = None,
    ) -> None:
        origin, wanted, changes = self._origin.anew(), (providers, provider_options), changes_of(self._options)
        opened = self._open_variant(origin, wanted, changes, progress)
        self._release()
        self._opened = opened
        self._origin, self._asked, self._changes = origin, wanted, changes
        if self._profile is not None:
            self._profile.add_opened(opened.session.page, opened.account, opened.created.get("timeline", ()))
        # What is asked for after the end, too.
        self._inputs, self._outputs = opened.inputs, opened.outputs
        self._input_names = frozenset(arg.name for arg in opened.inputs)
        self._location = self._output_location(opened)
        self._metadata, self._placement = opened.metadata, opened.placement

    def _open_variant(
        self,
        origin: Origin,
        providers: tuple[Providers | None, Sequence[Mapping[str, Any]] | None],
        changes: ModelChanges,
        progress: Progress | None = None,
    ) -> Opened:
        report = progress or (lambda stage, done, total: None)
        return Opening(origin, self._options, providers, self._browser, report, self._log, changes).open()

    def _output_location(self, opened: Opened) -> OutputLocation:
        """Where outputs go: the CPU if nothing of this model runs on a GPU here."""
        location = self._options.preferred_output_location
        preferred(location, opened.outputs, [])  # its names are to be those of outputs
        if why := impossible(location, opened.session.device):
            self._log.warning("preferred_output_location: %s, so outputs stay on the CPU", why)
        return HEAP if why else location

    # --- running

    def _start(
        self,
        names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        on_gpu: OnGpu | Callable[[Page], OnGpu] | None = None,
        spent: float = 0.0,
    ) -> Run:
        options, log = run_options or _DEFAULTS, self._log
        if run_options is not None:
            log = log.of_run(options.log_severity_level, options.logid)
            if ignored := options.without_effect():
                log.warning("run options without effect in a browser: %s", ", ".join(ignored))
        wanted = output_names(self._open(), names)
        check_mapping(input_feed)
        input_feed = options.feeds(input_feed)
        opened = self._for_run(wanted, input_feed, options)
        timeout = self._options.run_timeout if options.timeout is None else options.timeout
        if opened.session.gone:
            began = time.perf_counter()
            self._ready(opened, None if timeout is None else max(timeout - spent, 0.0))
            spent += time.perf_counter() - began
        if callable(on_gpu):
            on_gpu = on_gpu(opened.session.page)
        elif on_gpu is None:
            on_gpu = preferred(self._location, opened.outputs, wanted)
        if on_gpu and opened.session.device is not None:
            check_forms(on_gpu, opened.outputs, opened.session.device.provider)
        timed: Timed | None = None if self._profile is None else "dispatches"
        return Run(opened, wanted, input_feed, options, timeout, log, on_gpu, timed, spent)

    def _finish(self, run: Run) -> list[Any]:
        outputs = run.outputs()
        self._last_run = run.info
        if self._profile is not None and "timeline" in run.info:
            with typed_errors("profiling a run"):
                self._profile.add_run(run.times, run.info)
        if self._opened is not None:
            self._opened.times.setdefault("first_run_ms", run.info["total_ms"])
        return outputs

    def _for_run(self, wanted: Sequence[str], input_feed: Mapping[str, Any], options: RunOptions) -> Opened:
        """Return the session in the page for a run; one for other constants or fewer outputs is made when first asked.

        Initializers that may be fed are constants as long as nobody does, because that is so much quicker.
        """
        opened = self._open()
        fed = frozenset(arg.name for arg in opened.overridable if arg.name in input_feed)
        only = set(wanted) if options.only_execute_path_to_fetches else {arg.name for arg in opened.outputs}
        if not fed and len(only) == len(opened.outputs):
            return opened
        key = fed, frozenset(only)
        with self._making_variant:
            if key not in self._variants:
                names = None if len(only) == len(opened.outputs) else sorted(only)
                changes = self._changes.but(fed=fed, outputs=names)
                self._variants[key] = self._open_variant(self._origin, self._asked, changes)
            return self._variants[key]

    def _generating(self, prompt: Any, settings: Mapping[str, Any], timeout: float | None) -> tuple[Start, Form]:
        """Return what starts a generation, and what comes of it."""
        from py_ort.runtime.generation.generation import Form
        from py_ort.runtime.generation.model_folder import defaults_beside
        from py_ort.runtime.generation.settings import page_options, processor_of, result_rows, rows_of, seconds

        timeout = seconds(timeout)
        rows, batch = rows_of(prompt)
        defaults = defaults_beside(self._origin.path)
        processor = processor_of(settings)
        options = page_options(settings, defaults, max(map(len, rows)))
        wanted = result_rows(len(rows), options)
        if defaults.unmet:
            self._log.warning("generate does not do what the model's files say: %s", ", ".join(defaults.unmet))
        opened = self._ready(patience=timeout)

        def start(tokens: Callable[[list[int]], object]) -> Future[Answer]:
            return opened.runtime.start_generation(opened.session, rows, options, tokens, processor, timeout=timeout)

        several = options.get("numReturnSequences", 1) > 1
        return start, Form(wanted, batch or several, options.get("numBeams", 1) > 1)

    def _may_compile(self, input_feed: Mapping[str, Any], options: RunOptions) -> bool:
        """Whether starting a run may take long, because it may need a session of its own, or the session is lost."""
        if self._open().session.gone:
            return True
        fed = any(arg.name in options.feeds(input_feed) for arg in self._open().overridable)
        return fed or options.only_execute_path_to_fetches

    # --- asking
    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that may be fed: those that the model lists as inputs too.

        A run that feeds one has a session of its own in the page, made by the first such run.
        """
        return list(self._open().overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """Return what the model says of itself."""
        return self._metadata

    def get_providers(self) -> list[str]:
        """Return the providers of this session, onnxruntime's names, best first."""
        return [onnxruntime_name(name) for name in self._open().providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the providers' options, by onnxruntime's names."""
        from py_ort.providers.options import all_options

        options = self._open().runtime.options
        return {onnxruntime_name(name): all_options(name, options.get(name, {})) for name in self._open().providers}

    def get_session_options(self) -> SessionOptions:
        """Return a copy of the options that this session was made with."""
        return self._options._copy()

    def placement(self) -> Placement:
        """Return which node runs on which provider, and why. Prints as a table."""
        return self._placement

    def stats(self) -> dict[str, Any]:
        """Return times and counters.

        Keys: `create_ms`, `compile_ms` and `first_run_ms` as seen from here; `created`: the page's account of creation;
        `shapes`: those that plans were made for (see `py_ort.runtime.shape_plans`);
        `last_run`: its account of the last run (times, counters, whether it was replayed) and `total_ms`, seen from
        here; `traffic`: bytes that crossed the websocket so far; `session`: its recordings and memory; `page`: counters
        and memory of the whole page.
        """
        opened = self._open()
        session, page = opened.steadily(
            lambda: (opened.runtime.session_stats(opened.session), opened.runtime.page_stats())
        )
        return {
            **opened.times,
            "created": opened.created,
            "shapes": opened.shape_plans.shapes() if opened.shape_plans else [],
            "last_run": dict(self._last_run),
            "traffic": opened.session.page.traffic,
            "session": session,
            "page": page,
        }

    def memory(self) -> dict[str, dict[str, int]]:
        """Return what the session holds in the page, in bytes, by provider.

        For each provider: `weights`: constants, and what kernels made of them; `shared` of these bytes are held
        by other sessions too; `arena`: room for what is between the nodes, and for feeds and outputs that are not on
        the GPU already; `peak`: the most of it that was needed at one time (an output that takes the place of an input
        counts once). On wasm a run gives all of it back, so that both are the same; on the GPU the arena is kept, and
        serves all shapes seen. Values of IO binding and idle buffers in caches are the page's: see `stats()`.
        """
        opened = self._open()
        plans = opened.shape_plans
        answer = opened.steadily(lambda: memory_of(opened.runtime, opened.session, plans.sessions() if plans else []))
        return {name: answer[name] for name in opened.providers if name in answer}

    # --- profiling

    def end_profiling(self) -> str:
        """End the profile that `SessionOptions.enable_profiling` began, and write it as a Chrome trace.

        It loads in chrome://tracing and in Perfetto: the phases of the session's making, and of each run what Python,
        the bridge, the worker, the nodes on the CPU and the GPU's kernels did, on one clock.

        Returns:
            The file's name: `profile_file_prefix`, the date and the time, as onnxruntime names it. "" when profiling
            was not enabled, or is over.
        """
        profile, self._profile = self._profile, None
        if profile is None:
            return ""
        name = profile.write()
        for note in profile.notes:
            self._log.warning("%s: %s", name, note)
        return name

    def get_profiling_start_time_ns(self) -> int:
        """Return when profiling began, on the clock of `time.perf_counter_ns()`; 0 when it is not enabled."""
        return 0 if self._profile is None else self._profile.started_ns

    @property
    def browser(self) -> str:
        """The browser and its version."""
        return self._opened.runtime.lease.launcher.description if self._opened else ""

    @property
    def adapter(self) -> str:
        """The WebGPU adapter, in words; "" without WebGPU."""
        return self._opened.runtime.adapter if self._opened else ""

    # --- ending
    def close(self) -> None:
        """Release the session in the page; its runs and generations under way end with `Cancelled`.

        The browser ends some time after its last session. A profile is written. In a forked child nothing happens.
        """
        if self._opened is not None and self._opened.elsewhere:
            return
        self.end_profiling()
        self._release(end_runs=True)

    def _release(self, *, end_runs: bool = False) -> None:
        opened, self._opened = self._opened, None
        variants, self._variants = self._variants, {}
        for one in (opened, *variants.values()):
            if one is not None:
                one.release(end_runs=end_runs)

    def __del__(self) -> None:
        if getattr(self, "_opened", None) is not None:
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object: it is in a browser; make one of the same model")

    def __copy__(self) -> Self:
        return self  # there is one session in the page, which ends with its last reference

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._opened is None:
            return f"<{name}, closed>"
        counts = ", ".join(f"{n} nodes on {provider}" for provider, n in self._placement.counts().items())
        return f"<{name} {self._metadata.graph_name!r}: {counts}; {self.browser}>"

    # --- for what belongs to a session

    def _open(self) -> Opened:
        if self._opened is None:
            raise PyOrtError("this session is closed")
        if self._opened.elsewhere:
            raise ConnectionLost(OTHER_PROCESS)
        return self._opened

    def _ready(self, opened: Opened | None = None, patience: float | None = None) -> Opened:
        """Return the session, or one of its variants, once it is in the page; see `Opened.come_back`."""
        opened = opened or self._open()
        if opened.session.gone:
            opened.come_back(patience)
            if self._profile is not None:
                self._profile.follow(opened.session.page)
        return opened

    def _check_input_name(self, name: str) -> None:
        overridable = self._open().overridable
        if name in self._input_names:
            return
        known = [arg.name for arg in (*self._inputs, *overridable)]
        if name not in known:
            raise InvalidArgument(f"the model has no input {name!r}: it has {', '.join(map(repr, known))}")

    def _output_types(self) -> dict[str, str]:
        return {arg.name: arg.type for arg in self._outputs}


def _profile(options: SessionOptions) -> Profile | None:
    if not options.enable_profiling:
        return None
    from py_ort.profiling.profile import Profile

    return Profile(options.profile_file_prefix)

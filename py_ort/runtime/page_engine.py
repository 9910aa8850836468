"""py_ort's own engine: a model that is compiled here and runs in a browser's page."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from py_ort.boundary import typed_errors
from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
from py_ort.exceptions import (
    BrowserError,
    DeviceLost,
    InvalidArgument,
    NotImplemented,
    PyOrtError,
    ShaderError,
    Timeout,
    WorkerEnded,
)
from py_ort.providers import CPU, PROVIDERS
from py_ort.runtime.engine import EngineRequest
from py_ort.runtime.engines import OURS
from py_ort.runtime.generation.model_folder import decoder_file
from py_ort.runtime.memory import memory_of
from py_ort.runtime.opened import Opened
from py_ort.runtime.options import RunOptions, SessionOptions
from py_ort.runtime.page_sessions import PageSessions
from py_ort.runtime.run import Run, output_names
from py_ort.runtime.session_creation import Progress, Providers
from py_ort.runtime.session_model import Origin
from py_ort.runtime.slow_steps import SlowSteps
from py_ort.runtime.values.feeds import check_mapping
from py_ort.runtime.values.ort_device import HEAP
from py_ort.runtime.values.output_location import OnGpu, OutputLocation, check_forms, impossible, preferred, resolved

if TYPE_CHECKING:
    from py_ort.browser.page import Page
    from py_ort.compiler import NodeArg
    from py_ort.profiling import Profile
    from py_ort.runtime.devices import Device
    from py_ort.runtime.generation.generation import Form, Start
    from py_ort.runtime.values.device_tensor import DeviceTensor
    from py_ort.wire.json_fields import Timed


#: Options of runs without options.
_DEFAULTS = RunOptions()
#: After as many refused nodes a session continues without the provider.
_MOST_REFUSED = 8


class PageEngine:
    """A model in a page; see `Engine` for the attributes that sessions read.

    Args:
        request: The session's arguments.
        fallback: True to repeat a run whose device is lost on the CPU.

    Attributes:
        sessions: The model's sessions in the page.
        placement: Provider of each node, with the reason.
        location: Devices of the outputs of `run`.

    Raises:
        PyOrtError: As `InferenceSession` says.
    """

    name = OURS

    def __init__(self, request: EngineRequest, fallback: bool = False) -> None:
        self._last_run: dict[str, Any] = {}
        self.options, self.log, self.fallback = request.options, request.log(), fallback
        self.origin = Origin(decoder_file(request.source), self.options.config_entries.get(DATA_FOLDER_ENTRY, ""))
        if names := self.options.changed_without_effect():
            self.log.warning("session options without effect in a browser: %s", ", ".join(names))
        self.profile, self._progress = _profile(self.options), request.progress
        self.sessions = PageSessions(self.origin, self.options, request.browser, self.log)
        try:
            self.set_providers(request.providers, request.provider_options, request.progress)
        except BaseException:
            self.sessions.release()
            raise

    def set_providers(
        self,
        providers: Providers | None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Load the model for these providers. If that fails, the session stays as it is."""
        opened = self.sessions.load(providers, provider_options, progress)
        if self.profile is not None:
            self.profile.add_opened(opened.session.page, opened.account, opened.created.get("timeline", ()))
        # Kept, so that closed sessions answer, too.
        self.inputs, self.outputs = opened.inputs, opened.outputs
        self._input_names = frozenset(arg.name for arg in opened.inputs)
        self.location = self._output_location(opened)
        self.metadata, self.placement = opened.metadata, opened.placement

    def _output_location(self, opened: Opened) -> OutputLocation:
        """Return where outputs stay: on the CPU if no node of this model runs on a device here."""
        location = resolved(self.options.preferred_output_location, opened.session.device)
        preferred(location, opened.outputs, [])  # raises if it names an unknown output
        if why := impossible(location, opened.session.device):
            self.log.warning("preferred_output_location: %s, so outputs stay on the CPU", why)
        return HEAP if why else location

    # --- running

    def start(
        self,
        names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        on_gpu: OnGpu | Callable[[Page], OnGpu] | None = None,
        spent: float = 0.0,
    ) -> Run:
        """Start a run and return it.

        Args:
            names: Outputs wanted; None or empty: all.
            input_feed: By the name of the input.
            run_options: See `RunOptions`.
            on_gpu: Outputs to leave on the device, or a function that returns them for a page; None: as the session's
                options say.
            spent: Seconds of the run's time that an earlier try took.
        """
        options, log = run_options or _DEFAULTS, self.log
        if run_options is not None:
            log = log.of_run(options.log_severity_level, options.logid)
            if ignored := options.without_effect():
                log.warning("run options without effect in a browser: %s", ", ".join(ignored))
        wanted = output_names(self.sessions.main(), names)
        check_mapping(input_feed)
        input_feed = options.feeds(input_feed)
        opened = self.sessions.for_run(wanted, input_feed, options.only_execute_path_to_fetches)
        timeout = self.options.run_timeout if options.timeout is None else options.timeout
        if opened.session.gone:
            began = time.perf_counter()
            self.ready(opened, None if timeout is None else max(timeout - spent, 0.0))
            spent += time.perf_counter() - began
        if callable(on_gpu):
            on_gpu = on_gpu(opened.session.page)
        elif on_gpu is None:
            on_gpu = preferred(self.location, opened.outputs, wanted)
        if on_gpu and opened.session.device is not None:
            check_forms(on_gpu, opened.outputs, opened.session.device.provider)
        timed: Timed | None = None if self.profile is None else "dispatches"
        run = Run(opened, wanted, options, timeout, log, on_gpu, timed, self._progress)
        run.start(input_feed, spent)
        return run

    def finish(self, run: Run) -> list[Any]:
        """Return the outputs of a run that is over, and keep its account."""
        outputs = run.outputs()
        self._last_run = run.info
        if self.profile is not None and "timeline" in run.info:
            with typed_errors("profiling a run"):
                self.profile.add_run(run.times, run.info)
        if self.opened is not None:
            self.opened.times.setdefault("first_run_ms", run.info["total_ms"])
        return outputs

    def generating(self, prompt: Any, settings: Mapping[str, Any], timeout: float | None) -> tuple[Start, Form]:
        """Return a function that starts a generation, and the form of its tokens."""
        from py_ort.runtime.generation.start import start_of  # for sessions that generate

        return start_of(lambda s: self.ready(patience=s), self.origin.path, self.log, prompt, settings, timeout)

    def may_compile(self, input_feed: Mapping[str, Any], options: RunOptions) -> bool:
        """Return True if the start of a run may take long: it may need another session, or the session is lost."""
        if self.sessions.main().session.gone:
            return True
        fed = any(arg.name in options.feeds(input_feed) for arg in self.sessions.main().overridable)
        return fed or options.only_execute_path_to_fetches

    def run(
        self,
        names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        on_gpu: OnGpu | Callable[[Page], OnGpu] | None = None,
    ) -> list[Any]:
        """Run the model, again if its worker was ended or a provider refuses a part; see `start` for the arguments."""
        began, spent = time.perf_counter(), 0.0
        while True:
            with self._slow_first_run():
                run = self.start(names, input_feed, run_options, on_gpu, spent)
                run.wait()
            try:
                return self.finish(run)
            except WorkerEnded:
                if not run.repeatable:
                    raise
                spent = time.perf_counter() - began
            except DeviceLost as e:
                if not self.fallback:
                    raise
                self.log.warning("the device is lost, so the session goes on with %s: %s", CPU, e.message)
                self.set_providers([CPU])
                break
            except (ShaderError, NotImplemented) as e:
                if not self._may_give_up(e.provider):
                    raise
                return self._run_without(e, lambda: self.run(names, input_feed, run_options, on_gpu))
        return self.run(names, input_feed, run_options)

    def _slow_first_run(self) -> AbstractContextManager[object]:
        """Return a context in which a slow first run on a device gets a line."""
        if self.opened is None or self._progress or "first_run_ms" in self.times or not self.placement.device():
            return nullcontext()
        self._progress = SlowSteps(self.log, "compiling shaders")
        return self._progress

    def _may_give_up(self, provider: str) -> bool:
        """Return True if other providers may run nodes that this one refuses: one with whole graphs refuses late."""
        strict = self.options.config_entries.get("session.disable_cpu_ep_fallback") == "1"
        return not strict and provider in PROVIDERS and PROVIDERS[provider].whole_graphs

    def _run_without(self, refusal: PyOrtError, run: Callable[[], list[Any]]) -> list[Any]:
        """Run again without the refused node or provider; if that run fails, too, restore the session."""
        before, refused = self._in_use(), dict(self.options._refused)
        self._give_up(refusal)
        try:
            return run()
        except PyOrtError as e:
            if not isinstance(e, (BrowserError, Timeout)):
                self.options._refused = refused
                self.set_providers(before)
            raise

    def _give_up(self, refusal: PyOrtError) -> None:
        """Load the model again: other providers get the refused node, or all nodes of this provider."""
        left, refused = self._in_use(), self.options._refused
        if refusal.node and refusal.node not in refused and len(refused) < _MOST_REFUSED:
            refused[refusal.node] = refusal.provider, refusal.message
            self.log.warning(
                "%s refuses node %r, which another provider runs from now on: %s",
                refusal.provider,
                refusal.node,
                refusal,
            )
        else:
            left = [(name, options) for name, options in left if name != refusal.provider]
            words = "%s refuses a graph, so the session goes on with %s: %s"
            self.log.warning(words, refusal.provider, " and ".join(name for name, _ in left), refusal)
        self.set_providers(left)

    def _in_use(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the session's providers with their options, as `set_providers` accepts them."""
        opened = self.sessions.main()
        return [(name, opened.runtime.options.get(name, {})) for name in opened.providers]

    # --- asking

    @property
    def overridable(self) -> list[NodeArg]:
        """Initializers that may be fed."""
        return self.sessions.main().overridable

    @property
    def providers(self) -> list[str]:
        """Providers that may run nodes, best first."""
        return self.sessions.main().providers

    @property
    def times(self) -> Mapping[str, float]:
        """Times of the creation and the first run; see `InferenceSession.stats`."""
        return self.opened.times if self.opened else {}

    @property
    def captures(self) -> bool:
        """True if runs are captured."""
        return self.sessions.main().runtime.captures

    @property
    def device(self) -> Device | None:
        """Device of the session's nodes; None if all of them run on the CPU."""
        return self.sessions.main().session.device

    @property
    def page_device(self) -> Device | None:
        """The same, or the first device that the session opened."""
        return self.device or next(iter(self.sessions.main().runtime.devices), None)

    @property
    def browser(self) -> str:
        """The browser and its version."""
        return self.opened.runtime.lease.launcher.description if self.opened else ""

    @property
    def adapter(self) -> str:
        """The WebGPU adapter, in words; "" without WebGPU."""
        return self.opened.runtime.adapter if self.opened else ""

    def __str__(self) -> str:
        if self.opened is None:
            return ", closed"
        counts = ", ".join(f"{n} nodes on {provider}" for provider, n in self.placement.counts().items())
        return f" {self.metadata.graph_name!r}: {counts}; {self.browser}"

    def stats(self) -> dict[str, Any]:
        """Return times and counters; see `InferenceSession.stats`."""
        opened = self.sessions.main()
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
        """Return the session's memory in the page, in bytes, by provider; see `InferenceSession.memory`."""
        opened = self.sessions.main()
        plans = opened.shape_plans
        answer = opened.steadily(lambda: memory_of(opened.runtime, opened.session, plans.sessions() if plans else []))
        return {name: answer[name] for name in opened.providers if name in answer}

    def end_profiling(self) -> str:
        """End the profile and write it; return the file's name, or "" without a profile."""
        profile, self.profile = self.profile, None
        if profile is None:
            return ""
        name = profile.write()
        for note in profile.notes:
            self.log.warning("%s: %s", name, note)
        return name

    # --- ending

    def close(self) -> None:
        """Release the session in the page, after the profile is written. In a forked child nothing happens."""
        if self.opened is not None and self.opened.elsewhere:
            return
        self.end_profiling()
        self.sessions.release(end_runs=True)

    # --- for parts of a session

    @property
    def opened(self) -> Opened | None:
        """The main session in the page; None after the end."""
        return self.sessions.opened

    def ready(self, opened: Opened | None = None, patience: float | None = None) -> Opened:
        """Return a session, by default the main one, once it is in the page; see `Opened.come_back`."""
        opened = opened or self.sessions.main()
        if opened.session.gone:
            opened.come_back(patience)
            if self.profile is not None:
                self.profile.follow(opened.session.page)
        return opened

    def tensor_at(self, number: int, dtype: int, shape: Sequence[int]) -> DeviceTensor:
        """Return a tensor over a buffer of the session's page."""
        return self.ready().runtime.tensor_at(number, dtype, shape)

    def check_input_name(self, name: str) -> None:
        """Raise `InvalidArgument` if the model has no such input."""
        overridable = self.sessions.main().overridable
        if name in self._input_names:
            return
        known = [arg.name for arg in (*self.inputs, *overridable)]
        if name not in known:
            raise InvalidArgument(f"the model has no input {name!r}: it has {', '.join(map(repr, known))}")


def _profile(options: SessionOptions) -> Profile | None:
    if not options.enable_profiling:
        return None
    from py_ort.profiling.profile import Profile

    return Profile(options.profile_file_prefix)

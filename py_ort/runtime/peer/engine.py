"""The engine of `InferenceSession(…, engine="onnxruntime-web")`: the same model, run by onnxruntime-web."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.pool import Lease, pool
from py_ort.compiler import NodeArg
from py_ort.compiler.load import load_model, read_whole
from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
from py_ort.compiler.package.format import is_package
from py_ort.exceptions import EPFail, InvalidArgument, NotImplemented, PyOrtError
from py_ort.providers import on_device
from py_ort.providers.resolution import resolve
from py_ort.runtime.engine import EngineRequest
from py_ort.runtime.options import RunOptions, SessionOptions
from py_ort.runtime.peer.package_files import FLAVORS, check_engine, flavor_of
from py_ort.runtime.peer.worker import PeerWorker
from py_ort.runtime.session_model import Origin
from py_ort.runtime.values.feeds import check_mapping
from py_ort.runtime.values.ort_value import OrtValue

if TYPE_CHECKING:
    from py_ort.profiling import Profile

#: Words of onnxruntime-web, or of WebNN, where there is no provider.
_NO_BACKEND = ("no available backend found", "Failed to execute 'createContext'")
_LEVELS = {0: "disabled", 1: "basic", 2: "extended", 3: "layout", 99: "all"}


class PeerEngine:
    """A model in onnxruntime-web, in a worker of our page: outputs, errors and times.

    Its sessions have `run` and all that builds on it, inputs, outputs, metadata and `stats()`; other methods raise
    `NotImplemented`. Of the session options these count: threads, timeouts, the level of optimization, sizes of
    dimensions by name, and the configuration entries "session.require_providers", "session.disable_cpu_ep_fallback" and
    the folder of external data.

    Args:
        request: The session's arguments.
        name: The value of `engine=`.
        keywords: Further keywords of the session, which have no effect.

    Attributes:
        worker: The worker; None after the end.

    Raises:
        EngineError: onnxruntime-web is not installed, and npm cannot fetch it.
        NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: The model cannot be read, or an option is missing.
        Fail: onnxruntime-web refuses the model; its own words.
        BrowserNotFound, BrowserCrashed, Timeout: The browser cannot be used.
        EPFail: No provider can run in this browser, or a required one cannot.
    """

    fallback = False  # there is none
    profile: Profile | None = None
    adapter, placement = "", None  # onnxruntime-web does not tell

    def __init__(self, request: EngineRequest, name: str, keywords: Collection[str]) -> None:
        check_engine(name)
        self.name, self.options, self.log = name, request.options, request.log()
        self._patience = request.browser.launch_timeout
        self._lease: Lease | None = None
        self.worker: PeerWorker | None = None
        if keywords:
            self.log.warning("keywords without effect on %s: %s", name, ", ".join(keywords))
        if beyond := _beyond(self.options):
            self._refuse(f"the session options {', '.join(beyond)}")
        wanted = resolve(request.providers, request.provider_options, self.options.config_entries)
        flavors = {provider: flavor_of(name, provider) for provider in wanted.providers}
        unknown = {key: f"{name} has no such provider" for key, flavor in flavors.items() if flavor not in FLAVORS}
        flavors = {key: flavor for key, flavor in flavors.items() if key not in unknown}
        self.origin = Origin(request.source, self.options.config_entries.get(DATA_FOLDER_ENTRY, ""))
        report = request.progress or (lambda stage, done, total: None)
        report("reading the model", 0, 0)
        model = self._read(request.source)
        report(f"loading it into {name}", 0, 0)
        asked = time.perf_counter()
        self._last_run: dict[str, Any] = {}
        try:
            self._lease = loop_thread().call(pool().acquire(request.browser))
            began = time.perf_counter()
            self._begin(model, flavors, {**wanted.dropped, **unknown}, wanted.required, not wanted.cpu_may_stand_in)
        except BaseException:
            self.close()
            raise
        self.times = {"browser_ms": (began - asked) * 1000, "create_ms": (time.perf_counter() - began) * 1000}

    def _read(self, source: Any) -> bytes:
        if not isinstance(source, (bytes, bytearray, memoryview)) and is_package(source):
            self._refuse("models in a .pyort file")
        loaded = load_model(source, folder=self.origin.folder)
        given = [(NodeArg.of(value), value.is_initializer()) for value in loaded.model.graph.inputs]
        self.inputs = [arg for arg, constant in given if not constant]
        self.overridable = [arg for arg, constant in given if constant]
        self.outputs = [NodeArg.of(value) for value in loaded.model.graph.outputs]
        self.metadata = loaded.metadata
        return read_whole(source, self.origin.folder)

    def _begin(
        self, model: bytes, flavors: Mapping[str, str], left_out: dict[str, str], required: bool, alone: bool
    ) -> None:
        """Load the model on the first provider that the browser has."""
        assert self._lease is not None
        if left_out and required:
            raise EPFail(f"required, but not there: {_in_words(left_out)}")
        settings: dict[str, Any] = {"graphOptimizationLevel": _LEVELS[int(self.options.graph_optimization_level)]}
        if sizes := self.options.free_dimensions_by_name:
            settings["freeDimensionOverrides"] = dict(sizes)
        for name, flavor in flavors.items():
            threads = self.options.intra_op_num_threads or 1
            self.worker = PeerWorker.shared(self._lease, flavor, threads, self._patience)
            url = self.worker.publish(model)
            try:
                fallback = not alone or not on_device(FLAVORS[flavor].provider)
                self._session, self._created = self.worker.create(
                    url, self.options.create_timeout, fallback=fallback, session=settings
                )
            except PyOrtError as e:
                self.worker.forget()
                if not any(words in e.message for words in _NO_BACKEND):
                    raise
                left_out[name] = e.message
                if required:
                    break
                continue
            finally:
                self.worker.withdraw(url)
            self._provider = name
            if left_out:
                self.log.warning("left out: %s", _in_words(left_out))
            return
        raise EPFail(f"no execution provider can run here: {_in_words(left_out)}")

    def run(
        self, names: Sequence[str] | None, feeds: Mapping[str, Any], run_options: RunOptions | None, /
    ) -> list[Any]:
        """Run the model; of the run's options the timeout counts.

        Raises:
            InvalidArgument: There is no such input or output.
            NotImplemented: A feed is not a tensor, or its type cannot be passed to onnxruntime-web.
            Fail: onnxruntime-web failed; its own words.
            BrowserCrashed, PageCrashed, ConnectionLost, Timeout: The page is lost, or took too long.
        """
        if self.worker is None:
            raise PyOrtError("this session is closed: create another InferenceSession")
        check_mapping(feeds)
        inputs = [arg.name for arg in (*self.inputs, *self.overridable)]
        outputs = [arg.name for arg in self.outputs]
        for what, given, known in (("input", feeds, inputs), ("output", names or (), outputs)):
            for name in given:
                if name not in known:
                    raise InvalidArgument(
                        f"the model has no {what} {name!r}: it has {', '.join(map(repr, known)) or 'none'}"
                    )
        arrays = {name: self._array(name, value) for name, value in feeds.items()}
        timeout = self.options.run_timeout
        if run_options is not None and run_options.timeout is not None:
            timeout = run_options.timeout
        began = time.perf_counter()
        try:
            found, ms = self.worker.run(self._session, arrays, timeout)
        except PyOrtError:
            self.worker.forget()
            raise
        self._last_run = {"run_ms": ms, "total_ms": (time.perf_counter() - began) * 1000}
        self.times.setdefault("first_run_ms", self._last_run["total_ms"])
        return [found[name] for name in names or outputs]

    def _array(self, name: str, value: Any) -> np.ndarray:
        if isinstance(value, OrtValue):
            value = value.numpy()
        if value is None or (isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value)):
            self._refuse(f"input {name!r}, which is no tensor: sequences and optionals")
        return np.asarray(value)

    @property
    def providers(self) -> list[str]:
        """The provider of this session."""
        return [self._provider]

    def stats(self) -> dict[str, Any]:
        """Return `browser_ms`, `create_ms` and `first_run_ms`, measured in Python, `last_run` and `created`.

        `last_run` has `run_ms` on the page's clock and `total_ms`; `created` is the page's account, with
        onnxruntime-web's `version`.
        """
        return {**self.times, "created": self._created, "last_run": dict(self._last_run)}

    @property
    def browser(self) -> str:
        """The browser and its version."""
        return self._lease.launcher.description if self._lease else ""

    def end_profiling(self) -> str:
        """Return "": there is no profile."""
        return ""

    def close(self) -> None:
        """Release the session in the page. The browser ends some time after its last session."""
        worker, self.worker = self.worker, None
        lease, self._lease = self._lease, None
        if worker is not None and hasattr(self, "_session"):
            worker.release(self._session)
        if lease is not None:
            soon(lambda: pool().release(lease))

    def __str__(self) -> str:
        return f" on {self.name}: {f'{self._provider}; {self.browser}' if self.worker else 'closed'}"

    def _refuse(self, what: str) -> NoReturn:
        raise NotImplemented(f"{what}: sessions of {self.name} have not; leave engine= out for those of py_ort")


def _beyond(options: SessionOptions) -> list[str]:
    """Return the options that require features of py_ort's own engine."""
    asked = {
        "enable_profiling": options.enable_profiling,
        "optimized_model_filepath": options.optimized_model_filepath,
        "preferred_output_location": options.preferred_output_location != "cpu",
        "add_initializer": options._initializers,
        "add_external_initializers": options._external_initializers or options._files,
        "add_free_dimension_override_by_denotation": options.free_dimensions_by_denotation,
    }
    return [name for name, there in asked.items() if there]


def _in_words(left_out: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in left_out.items())

"""`InferenceSession(…, engine="onnxruntime-web")`: the same model, run by what others ship."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from py_ort.boundary import public
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.options import BrowserOptions
from py_ort.browser.pool import Lease, pool
from py_ort.compiler import NodeArg
from py_ort.compiler.load import load_model, read_whole
from py_ort.compiler.load.files import DATA_FOLDER_ENTRY
from py_ort.compiler.package.format import is_package
from py_ort.exceptions import EPFail, InvalidArgument, NotImplemented, PyOrtError, WrongType
from py_ort.log import SessionLog
from py_ort.providers import on_device
from py_ort.providers.resolution import resolve
from py_ort.runtime.opening import Providers
from py_ort.runtime.options import RunOptions, SessionOptions
from py_ort.runtime.origin import Origin
from py_ort.runtime.peer.files import FLAVORS, check_engine, flavor_of
from py_ort.runtime.peer.worker import PeerWorker
from py_ort.runtime.session import InferenceSession
from py_ort.runtime.values.feeds import check_mapping
from py_ort.runtime.values.io_binding import IOBinding
from py_ort.runtime.values.ort_value import OrtValue

if TYPE_CHECKING:
    from py_ort.providers import Placement

#: What it, or WebNN, says where its provider is not there.
_NO_BACKEND = ("no available backend found", "Failed to execute 'createContext'")
_LEVELS = {0: "disabled", 1: "basic", 2: "extended", 3: "layout", 99: "all"}


@public
class PeerSession(InferenceSession):
    """A model in onnxruntime-web, in a worker of our page: outputs, errors and times.

    It has `run` and what builds on it, inputs, outputs, metadata and `stats()`; anything else is `NotImplemented`. Of
    the session options these count: threads, timeouts, the level of optimization, sizes of dimensions by name, and the
    configuration entries "session.require_providers", "session.disable_cpu_ep_fallback" and the folder of external
    data.

    Raises:
        EngineError: onnxruntime-web is not here, and npm cannot fetch it.
        NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: The model cannot be read, or an option is not there.
        Fail: onnxruntime-web does not take the model; its own words.
        BrowserNotFound, BrowserCrashed, Timeout: There is no browser to run it in.
        EPFail: None of the providers can run in this browser, or one that is required cannot.
    """

    _lease: Lease | None = None
    _worker: PeerWorker | None = None

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        browser: str | BrowserOptions | None = None,
        launcher: str | None = None,
        pages: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        engine: str,
        **keywords: Any,
    ) -> None:
        if not isinstance(path_or_bytes, (str, os.PathLike, bytes, bytearray, memoryview)):
            raise WrongType(f"a model is the path of a file, or its bytes, not {type(path_or_bytes).__name__}")
        check_engine(engine)
        self._engine, self._opened, self._profile, self._variants = engine, None, None, {}
        self._options = sess_options._copy() if sess_options else SessionOptions()
        self._browser = BrowserOptions.of(browser, launcher, pages)
        self._log = SessionLog(self._options.log_severity_level, self._options.logid)
        if keywords:
            self._log.warning("keywords without effect on %s: %s", engine, ", ".join(keywords))
        if asked := _beyond(self._options):
            self._refuse(f"the session options {', '.join(asked)}")
        if providers is None and self._options.has_providers():
            providers = list(self._options._providers.items())
        wanted = resolve(providers, provider_options, self._options.config_entries)
        flavors = {name: flavor_of(engine, name) for name in wanted.providers}
        unknown = {name: f"{engine} has no such provider" for name, flavor in flavors.items() if flavor not in FLAVORS}
        flavors = {name: flavor for name, flavor in flavors.items() if name not in unknown}
        self._origin = Origin(path_or_bytes, self._options.config_entries.get(DATA_FOLDER_ENTRY, ""))
        report = progress or (lambda stage, done, total: None)
        report("reading the model", 0, 0)
        model = self._read(path_or_bytes)
        report(f"loading it into {engine}", 0, 0)
        began = time.perf_counter()
        self._last_run: dict[str, Any] = {}
        try:
            self._lease = loop_thread().call(pool().acquire(self._browser))
            self._begin(model, flavors, {**wanted.dropped, **unknown}, wanted.required, not wanted.cpu_may_stand_in)
        except BaseException:
            self.close()
            raise
        self._times = {"create_ms": (time.perf_counter() - began) * 1000}

    def _read(self, source: Any) -> bytes:
        if not isinstance(source, (bytes, bytearray, memoryview)) and is_package(source):
            self._refuse("models in a .pyort file")
        loaded = load_model(source, folder=self._origin.folder)
        given = [(NodeArg.of(value), value.is_initializer()) for value in loaded.model.graph.inputs]
        self._inputs = [arg for arg, constant in given if not constant]
        self._overridable = [arg for arg, constant in given if constant]
        self._outputs = [NodeArg.of(value) for value in loaded.model.graph.outputs]
        self._metadata = loaded.metadata
        return read_whole(source, self._origin.folder)

    def _begin(
        self, model: bytes, flavors: Mapping[str, str], left_out: dict[str, str], required: bool, alone: bool
    ) -> None:
        """Load the model on the first provider that is there."""
        assert self._lease is not None
        if left_out and required:
            raise EPFail(f"required, but not there: {_in_words(left_out)}")
        settings: dict[str, Any] = {"graphOptimizationLevel": _LEVELS[int(self._options.graph_optimization_level)]}
        if sizes := self._options.free_dimensions_by_name:
            settings["freeDimensionOverrides"] = dict(sizes)
        for name, flavor in flavors.items():
            threads = self._options.intra_op_num_threads or 1
            self._worker = PeerWorker.shared(self._lease, flavor, threads, self._browser.launch_timeout)
            url = self._worker.publish(model)
            try:
                fallback = not alone or not on_device(FLAVORS[flavor].provider)
                self._session, self._created = self._worker.create(
                    url, self._options.create_timeout, fallback=fallback, session=settings
                )
            except PyOrtError as e:
                self._worker.forget()
                if not any(words in e.message for words in _NO_BACKEND):
                    raise
                left_out[name] = e.message
                if required:
                    break
                continue
            finally:
                self._worker.withdraw(url)
            self._provider = name
            if left_out:
                self._log.warning("left out: %s", _in_words(left_out))
            return
        raise EPFail(f"no execution provider can run here: {_in_words(left_out)}")

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
            input_feed: Arrays (or `OrtValue`s on the CPU) by the names of the inputs.
            run_options: Its timeout counts.

        Returns:
            The outputs, as arrays.

        Raises:
            InvalidArgument: There is no such input or output.
            NotImplemented: A feed is no tensor, or of a type that onnxruntime-web does not take from us.
            Fail: onnxruntime-web failed; its own words.
            BrowserCrashed, PageCrashed, ConnectionLost, Timeout: The page is gone, or took too long.
        """
        if self._worker is None:
            raise PyOrtError("this session is closed")
        check_mapping(input_feed)
        inputs = [arg.name for arg in (*self._inputs, *self._overridable)]
        outputs = [arg.name for arg in self._outputs]
        for what, names, known in (("input", input_feed, inputs), ("output", output_names or (), outputs)):
            for name in names:
                if name not in known:
                    raise InvalidArgument(
                        f"the model has no {what} {name!r}: it has {', '.join(map(repr, known)) or 'none'}"
                    )
        feeds = {name: self._array(name, value) for name, value in input_feed.items()}
        timeout = self._options.run_timeout
        if run_options is not None and run_options.timeout is not None:
            timeout = run_options.timeout
        began = time.perf_counter()
        try:
            found, ms = self._worker.run(self._session, feeds, timeout)
        except PyOrtError:
            self._worker.forget()
            raise
        self._last_run = {"run_ms": ms, "total_ms": (time.perf_counter() - began) * 1000}
        self._times.setdefault("first_run_ms", self._last_run["total_ms"])
        return [found[name] for name in output_names or outputs]

    def _array(self, name: str, value: Any) -> np.ndarray:
        if isinstance(value, OrtValue):
            value = value.numpy()
        if value is None or (isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value)):
            self._refuse(f"input {name!r}, which is no tensor: sequences and optionals")
        return np.asarray(value)

    # --- asking

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the initializers that the model lists as inputs too."""
        return list(self._overridable)

    def get_providers(self) -> list[str]:
        """Return the provider of this session, by onnxruntime's name."""
        from py_ort.providers import onnxruntime_name

        return [onnxruntime_name(self._provider)]

    def stats(self) -> dict[str, Any]:
        """Return `create_ms`, `first_run_ms` (from here), `last_run` (`run_ms` on the page's clock and `total_ms`),
        `created` (the page's account, onnxruntime-web's `version` in it).
        """
        return {**self._times, "created": self._created, "last_run": dict(self._last_run)}

    def placement(self) -> Placement:
        """There is none: onnxruntime-web does not tell which node runs where."""
        self._refuse("placement()")

    def io_binding(self) -> IOBinding:
        """There is none."""
        self._refuse("io_binding()")

    @property
    def browser(self) -> str:
        """The browser and its version."""
        return self._lease.launcher.description if self._lease else ""

    @property
    def adapter(self) -> str:
        """Always "": onnxruntime-web does not tell."""
        return ""

    # --- ending

    def close(self) -> None:
        """Release the session in the page. The browser goes some time after its last session."""
        worker, self._worker = self._worker, None
        lease, self._lease = self._lease, None
        if worker is not None and hasattr(self, "_session"):
            worker.release(self._session)
        if lease is not None:
            soon(lambda: pool().release(lease))

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"{self._provider}; {self.browser}" if self._worker else "closed"
        return f"<InferenceSession on {self._engine}: {where}>"

    def _open(self) -> NoReturn:
        self._refuse("this")

    def _ready(self, *_: Any) -> NoReturn:
        self._refuse("this")

    def _refuse(self, what: str) -> NoReturn:
        raise NotImplemented(f"{what}: sessions of {self._engine} have not; leave engine= out for those of py_ort")


def _beyond(options: SessionOptions) -> list[str]:
    """Options that ask for what it has not."""
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

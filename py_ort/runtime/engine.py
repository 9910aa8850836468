"""The interface between a session and what runs its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from py_ort.log import SessionLog
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.session_model import check_source

if TYPE_CHECKING:
    from py_ort.browser.browser_options import BrowserOptions
    from py_ort.compiler import NodeArg
    from py_ort.compiler.load import ModelMetadata
    from py_ort.profiling import Profile
    from py_ort.providers import Placement
    from py_ort.runtime.options import RunOptions
    from py_ort.runtime.session_creation import Progress, Providers
    from py_ort.runtime.session_model import Origin, Source


@dataclass
class EngineRequest:
    """A session's arguments for its engine.

    Attributes:
        source: An ONNX file, or its bytes.
        options: Options of the session; in place of those given, the session's own copy.
        providers: Execution providers, best first; None: those of `options`, else WebGPU, then the CPU.
        provider_options: Options for each of `providers`, as dicts.
        browser: Options of the browser.
        progress: Called with (stage, done, total) while the model is loaded.

    Raises:
        WrongType: `source` is neither a path nor bytes.
    """

    source: Source
    options: SessionOptions
    providers: Providers | None
    provider_options: Sequence[Mapping[str, Any]] | None
    browser: BrowserOptions
    progress: Progress | None

    def __post_init__(self) -> None:
        check_source(self.source)
        self.options = self.options._copy()
        if self.providers is None and self.options.has_providers():
            self.providers = list(self.options._providers.items())

    def log(self) -> SessionLog:
        """Return a new log with the session's options."""
        return SessionLog(self.options.log_severity_level, self.options.logid)


class Engine(Protocol):
    """A model that is ready to run; `PageEngine` is py_ort's own, `PeerEngine` is onnxruntime-web.

    `str()` of an engine continues the words "a session": with the model's name and its place, or that it is closed.

    Attributes:
        name: The value of `engine=`.
        options: The session's own copy of its options.
        origin: The model.
        log: The session's log.
        inputs: The model's inputs, without `overridable`.
        overridable: Initializers that may be fed.
        outputs: The model's outputs.
        metadata: The model's metadata.
        providers: Providers that may run nodes, best first.
        browser: The browser and its version; "" after the end.
        adapter: The WebGPU adapter, in words; "" if it is unknown.
        fallback: True if a run whose device is lost is repeated on the CPU.
        profile: The profile of the session's runs, if it is enabled.
        placement: Provider of each node, with the reason; None if the engine does not tell.
        times: `browser_ms`, `create_ms` and `first_run_ms` as far as they are known; see `SessionBase.stats`.
    """

    name: str
    options: SessionOptions
    origin: Origin
    log: SessionLog
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    metadata: ModelMetadata
    fallback: bool
    profile: Profile | None

    @property
    def placement(self) -> Placement | None: ...
    @property
    def times(self) -> Mapping[str, float]: ...
    @property
    def overridable(self) -> list[NodeArg]: ...
    @property
    def providers(self) -> list[str]: ...
    @property
    def browser(self) -> str: ...
    @property
    def adapter(self) -> str: ...

    def run(
        self, names: Sequence[str] | None, feeds: Mapping[str, Any], run_options: RunOptions | None, /
    ) -> list[Any]:
        """Run the model; outputs that stay on a device are `DeviceTensor`s."""

    def stats(self) -> dict[str, Any]:
        """Return times and counters."""

    def end_profiling(self) -> str:
        """Write the profile; return its file's name, or "" without a profile."""

    def close(self) -> None:
        """Release the model in the page; may be called again."""

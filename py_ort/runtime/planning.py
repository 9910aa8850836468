"""From a model's file to its plan: from the plan cache, or compiled now and stored there in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from py_ort.boundary import typed_errors
from py_ort.compiler.load.digest import FileStamp
from py_ort.compiler.plan.cache import PlanCache, cache_key
from py_ort.compiler.plan.cached import CachedModel
from py_ort.compiler.saved.target import SavedModel
from py_ort.exceptions import InvalidGraph, NotImplemented, PyOrtError, Timeout
from py_ort.runtime.model_changes import ModelChanges
from py_ort.runtime.session_model import Origin
from py_ort.uninterrupted import time_limit

if TYPE_CHECKING:
    from py_ort.compiler import CompiledModel, CompileOptions, NodeArg
    from py_ort.compiler.load import LoadedModel, ModelMetadata
    from py_ort.compiler.placement.devices import Devices
    from py_ort.providers import Placement
    from py_ort.wire.parts import Part

_log = logging.getLogger("py_ort")


class Planned(Protocol):
    """A plan and its description for a session: `CompiledModel`, `CachedModel` or `ExportedModel`.

    Attributes:
        scope: Origin of the plan; "": compiled here. Keys of weights are equal only within one origin.
    """

    plan: bytes
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    overridable: list[NodeArg]
    metadata: ModelMetadata
    placement: Placement
    scope: str

    def parts(self) -> Sequence[Part]: ...


class Planner:
    """Makes plans of one model.

    Args:
        origin: The model.
        changes: Changes made to the model each time it is read.
        cache: The cache of plans, if any.
        limit: Seconds for reading the model, and for making a plan; None: no limit.

    Attributes:
        devices: Devices that placement asks about nodes, once they are open.
    """

    def __init__(
        self,
        origin: Origin,
        changes: ModelChanges | None = None,
        cache: PlanCache | None = None,
        limit: float | None = None,
    ) -> None:
        self.devices: Devices | None = None
        self._origin = origin
        self._limit = limit
        self._changes = changes or ModelChanges()
        self._cache = cache
        self._digest: str | None = None
        self._stamp: FileStamp | None = None
        self._lock = threading.RLock()
        self._loaded: LoadedModel | None = None
        self._found: tuple[str, CachedModel] | None = None
        self._to_store: tuple[str, CompiledModel, LoadedModel] | None = None
        self._distrusts_cache = False

    @typed_errors("reading the model")
    def expect(self, providers: Sequence[str], options: CompileOptions) -> None:
        """Read and check the model now, unless its plan for these providers is in the cache."""
        key = self._key(providers, options)
        if not self._look_up(key):
            from py_ort.compiler.compile import check_operators
            from py_ort.compiler.target import Target

            with self._limited("reading"):
                check_operators(self._load(), Target.of(providers))

    @typed_errors("making the plan")
    def plan(self, providers: Sequence[str], options: CompileOptions, optimized: SavedModel | None = None) -> Planned:
        """Return the plan.

        Args:
            providers: Canonical names, in order.
            options: Options of the compiler.
            optimized: Target of the optimized graph, if it is to be written.

        Raises:
            NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: As `load_model` and `compile_model` do.
            Fail: A file has changed since the first plan.
            Timeout: The plan takes longer than the limit.
        """
        with self._lock, self._limited("compiling"):
            return self._plan(providers, options, optimized)

    def _plan(self, providers: Sequence[str], options: CompileOptions, optimized: SavedModel | None) -> Planned:
        key = self._key(providers, options)
        if self._look_up(key):
            _log.info("the plan is in the cache: no pass runs")
            (_, found), self._found, self._loaded = self._found, None, None  # type: ignore[misc]
            self._origin.settle(self._stamp, found.external)
            return found
        from py_ort.compiler import compile_model

        loaded, self._loaded = self._loaded or self._load(), None  # compiling changes it
        compiled = compile_model(
            loaded, providers=providers, options=options, optimized=optimized, devices=self.devices
        )
        if key is not None and self._unchanged():
            self._to_store = key, compiled, loaded
        return compiled

    def _limited(self, doing: str) -> AbstractContextManager[None]:
        took = f"{doing} the model took longer than create_timeout ({self._limit} s)"
        text = f"{took}: set it higher, or to None for no limit"
        return time_limit(self._limit, lambda: Timeout(text))

    def offers(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Return True if there can be a plan for only these shapes of inputs."""
        return True

    def reject(self, planned: Planned, why: PyOrtError) -> bool:
        """Forget a plan that the page refused; return True if `plan` returns another one, as the cached plan is bad.

        A plan that a provider refuses because of its options is not at fault, and another plan would be refused, too.
        """
        by_option = bool(why.provider) and (
            isinstance(why, InvalidGraph) or (isinstance(why, NotImplemented) and not why.node)
        )
        if by_option or not isinstance(planned, CachedModel) or self._cache is None:
            return False
        self._cache.reject(planned.file, why)
        self._distrusts_cache = True  # the cache may be read-only
        return True

    def store(self) -> None:
        """Store the last compiled plan in the cache, in the background. Called when the page has loaded the plan."""
        with self._lock:
            if self._to_store is not None and self._cache is not None:
                self._cache.store(*self._to_store, self._origin.path)
            self._to_store = None

    def _load(self) -> LoadedModel:
        from py_ort.compiler.load import load_model

        stamp = self._looked_at()
        source, changes = self._origin.source, self._changes
        self._loaded = load_model(source, folder=self._origin.folder, files=changes.files, replaced=changes.replaced)
        self._origin.settle(stamp, self._loaded.external)
        self._changes.apply(self._loaded)
        if self._digest is not None and not self._changes and stamp == self._stamp:
            self._loaded.identify(self._digest)
        return self._loaded

    def _key(self, providers: Sequence[str], options: CompileOptions) -> str | None:
        if self._digest is None and not self._changes:
            try:
                self._stamp = self._origin.stamp()
                self._digest = self._origin.digest(self._cache.notes if self._cache else None)
            except (OSError, ValueError):
                return None  # loading the model raises the error
        if self._cache is None or self._digest is None:
            return None
        return cache_key(self._digest, providers, options, self.devices.key if self.devices else "")

    def _look_up(self, key: str | None) -> bool:
        if key is None or self._cache is None or self._distrusts_cache:
            return False
        if self._found is None or self._found[0] != key:
            found = self._cache.load(key, self._origin.folder)
            self._found = None if found is None else (key, found)
        return self._found is not None

    def _unchanged(self) -> bool:
        """Return True if the file has not changed since its hash was computed."""
        return self._looked_at() == self._stamp

    def _looked_at(self) -> FileStamp | None:
        try:
            return self._origin.stamp()
        except (OSError, ValueError):  # reading the model raises the error
            return None

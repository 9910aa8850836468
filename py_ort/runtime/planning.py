"""From a model's file to its plan: out of the plan cache, or compiled now and written there in the background."""

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
from py_ort.runtime.origin import Origin
from py_ort.uninterrupted import time_limit

if TYPE_CHECKING:
    from py_ort.compiler import CompiledModel, CompileOptions, NodeArg
    from py_ort.compiler.load import LoadedModel, ModelMetadata
    from py_ort.compiler.placement.devices import Devices
    from py_ort.providers import Placement
    from py_ort.wire.parts import Part

_log = logging.getLogger("py_ort")


class Planned(Protocol):
    """A plan and all that a session must know about it: `CompiledModel`, `CachedModel` or `ExportedModel`.

    Attributes:
        scope: Where it is from; "": it was compiled here. What it calls the same weight is the same only there.
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
    """One model, and the plans that are made of it.

    Args:
        origin: The model.
        changes: Made in the model each time it was read.
        cache: Where plans are kept, None: nowhere.
        limit: Seconds that reading the model, and making a plan, may take each; None: no limit.

    Attributes:
        devices: Those that plans are made for, once they are open.
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
        """Read the model now, unless its plan for these providers is in the cache."""
        key = self._key(providers, options)
        if not self._look_up(key):
            with self._limited("reading"):
                self._load()

    @typed_errors("making the plan")
    def plan(self, providers: Sequence[str], options: CompileOptions, optimized: SavedModel | None = None) -> Planned:
        """Return the plan.

        Args:
            providers: Canonical names, in order.
            options: How to compile.
            optimized: Where to write the optimized graph to, where it is compiled.

        Raises:
            NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: As `load_model` and `compile_model` do.
            Fail: It is not the first plan, and a file is another one by now.
            Timeout: It takes longer than the limit.
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
        """Whether there can be a plan for these shapes of inputs alone."""
        return True

    def reject(self, planned: Planned, why: PyOrtError) -> bool:
        """Forget a plan that the page refused; return whether `plan` gives another one: this one was in the cache.

        What a provider refuses because of its options is a sound plan, and any other of the model would be, too.
        """
        by_option = bool(why.provider) and (
            isinstance(why, InvalidGraph) or (isinstance(why, NotImplemented) and not why.node)
        )
        if by_option or not isinstance(planned, CachedModel) or self._cache is None:
            return False
        self._cache.reject(planned.file, why)
        self._distrusts_cache = True  # it may be for reading only
        return True

    def store(self) -> None:
        """Put what was compiled last into the cache, in the background. Called when the page has it."""
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
                return None  # loading it says what is wrong
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
        """Whether the file is still the one whose hash was taken."""
        return self._looked_at() == self._stamp

    def _looked_at(self) -> FileStamp | None:
        try:
            return self._origin.stamp()
        except (OSError, ValueError):  # reading it says what is wrong
            return None

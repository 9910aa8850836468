"""From a model's file to its plan: out of the plan cache, or compiled now."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from py_ort.boundary import typed_errors
from py_ort.exceptions import Fail
from py_ort.load.digest import FileStamp, digest, file_digest
from py_ort.load.files import DataFolder
from py_ort.plan.cache import PlanCache, cache_key
from py_ort.plan.cached import CachedModel
from py_ort.plan.saved import SavedModel
from py_ort.sessions.model_changes import ModelChanges

if TYPE_CHECKING:
    from py_ort.load import LoadedModel, ModelMetadata
    from py_ort.plan import CompiledModel, CompileOptions, NodeArg
    from py_ort.plan.parts import Part
    from py_ort.providers import Placement

_log = logging.getLogger("py_ort")

Source: TypeAlias = "str | os.PathLike[str] | bytes"
_BYTES = (bytes, bytearray, memoryview)


class Planned(Protocol):
    """A plan and all that a session must know about it: `CompiledModel` or `CachedModel`."""

    plan: bytes
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    overridable: list[NodeArg]
    metadata: ModelMetadata
    placement: Placement

    def parts(self) -> Sequence[Part]: ...


class Planner:
    """One model, and the plans that are made of it.

    Args:
        source: Path or bytes of an ONNX file.
        changes: Made in the model each time it was read.
        cache: Where plans are kept, None: nowhere.
        folder: The folder of the model's external data, where it is not that of its file.
    """

    def __init__(
        self,
        source: Source,
        changes: ModelChanges | None = None,
        cache: PlanCache | None = None,
        folder: str = "",
    ) -> None:
        self._source = source
        self._folder = DataFolder.of(source, folder)
        self._changes = changes or ModelChanges()
        self._cache = cache
        self._digest: str | None = None
        self._stamp: FileStamp | None = None
        self._planned = False
        self._lock = threading.RLock()
        self._loaded: LoadedModel | None = None
        self._found: tuple[str, Planned] | None = None
        self._to_store: tuple[str, CompiledModel, LoadedModel] | None = None
        self._distrusts_cache = False

    @typed_errors("reading the model")
    def expect(self, providers: Sequence[str], options: CompileOptions) -> None:
        """Read the model now, unless its plan for these providers is in the cache."""
        key = self._key(providers, options)
        if not self._look_up(key):
            self._load()

    @typed_errors("making the plan")
    def plan(self, providers: Sequence[str], options: CompileOptions, optimised: SavedModel | None = None) -> Planned:
        """Return the plan.

        Args:
            providers: Canonical names, in order.
            options: How to compile.
            optimised: Where to write the optimised graph to, where it is compiled.

        Raises:
            NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: As `load_model` and `compile_model` do.
            Fail: It is not the first plan, and the file is another one by now.
        """
        with self._lock:
            return self._plan(providers, options, optimised)

    def _plan(self, providers: Sequence[str], options: CompileOptions, optimised: SavedModel | None) -> Planned:
        key = self._key(providers, options)
        if self._look_up(key):
            _log.info("the plan is in the cache: no pass runs")
            (_, found), self._found, self._loaded = self._found, None, None  # type: ignore[misc]
            self._planned = True
            return found
        from py_ort.plan import compile_model

        loaded, self._loaded = self._loaded or self._load(), None  # compiling changes it
        compiled = compile_model(loaded, providers=providers, options=options, optimised=optimised)
        if key is not None and self._unchanged():
            self._to_store = key, compiled, loaded
        self._planned = True
        return compiled

    def reject(self, planned: Planned, why: Exception) -> bool:
        """Forget a plan that the page refused; return whether `plan` gives another one: this one was in the cache."""
        if not isinstance(planned, CachedModel) or self._cache is None:
            return False
        self._cache.reject(planned.file, why)
        self._distrusts_cache = True  # it may be for reading only
        return True

    def store(self) -> None:
        """Put what was compiled last into the cache, in the background. Called when the page has it."""
        with self._lock:
            if self._to_store is not None and self._cache is not None:
                source = "" if isinstance(self._source, _BYTES) else str(Path(self._source).absolute())
                self._cache.store(*self._to_store, source)
            self._to_store = None

    def _load(self) -> LoadedModel:
        from py_ort.load import load_model

        if self._stamp is None and not isinstance(self._source, _BYTES):
            with contextlib.suppress(OSError, ValueError):  # loading it says what is wrong
                self._stamp = FileStamp.of(self._source)
        if self._planned and not self._unchanged():
            name = os.fspath(self._source)
            raise Fail(f"{name!r} is not the file any more that the session was made of: make it anew")
        changes = self._changes
        self._loaded = load_model(self._source, folder=self._folder, files=changes.files, replaced=changes.replaced)
        self._changes.apply(self._loaded)
        if self._digest is not None and not self._changes:
            self._loaded.identify(self._digest)
        return self._loaded

    def _key(self, providers: Sequence[str], options: CompileOptions) -> str | None:
        if self._digest is None and not self._changes:
            try:
                if isinstance(self._source, _BYTES):
                    self._digest = digest(self._source)
                else:
                    self._stamp = FileStamp.of(self._source)
                    self._digest = file_digest(Path(self._source), self._cache.notes if self._cache else None)
            except (OSError, ValueError):
                return None  # loading it says what is wrong
        if self._cache is None or self._digest is None:
            return None
        return cache_key(self._digest, providers, options)

    def _look_up(self, key: str | None) -> bool:
        if key is None or self._cache is None or self._distrusts_cache:
            return False
        if self._found is None or self._found[0] != key:
            found = self._cache.load(key, self._folder)
            self._found = None if found is None else (key, found)
        return self._found is not None

    def _unchanged(self) -> bool:
        """Whether the file is still the one whose hash was taken."""
        try:
            return isinstance(self._source, _BYTES) or FileStamp.of(self._source) == self._stamp
        except OSError:
            return False

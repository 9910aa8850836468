"""Plans on disk, so that a model is compiled once: found again by contents, options and version.

One file holds one plan with its weights. Files appear whole (they are written beside and renamed), so that several
processes may share the folder; the least recently used go when it grows too large. A file that is damaged, or whose
model's external data changed, is passed over with a warning; so is one whose plan the page refuses.

Entries are found by a hash of the model's contents (for files noted by size, times and inode, so that an unchanged file
is not read), providers, options, registered user kernels, the stamps of our own sources and manifests, and versions.
Nothing of the compiler is imported for a plan that is found. Changed models (`ModelChanges`) are not kept.

Variables: PY_ORT_CACHE=0, PY_ORT_CACHE_DIR, PY_ORT_CACHE_MB (4096); session entry `session.plan_cache` = `0`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py_ort.compiler.load.digest import FileStamp
from py_ort.compiler.load.model_files import UNFINISHED, DataFolder, make_private, replacing
from py_ort.compiler.plan.cached import CachedModel, DamagedEntry, read_entry, read_header, write_entry
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidArgument
from py_ort.folders import ASSETS, PACKAGE, user_caches
from py_ort.ir.operators import REGISTERED
from py_ort.providers import FOLDERS

if TYPE_CHECKING:
    from py_ort.compiler import CompiledModel, CompileOptions
    from py_ort.compiler.load import LoadedModel
    from py_ort.wire.json_fields import UserDefinition

_log = logging.getLogger("py_ort")
_SUFFIX = ".plan"
_DEFAULT_BYTES = 4 << 30
#: The number of plans, and the share of the limit, that may be stored before the folder's size is checked again.
_UNCHECKED = 100
_UNCHECKED_SHARE = 16
#: An unfinished file that is older than this many seconds was left by a process that died.
_ABANDONED = 3600


@dataclass(frozen=True)
class CacheRecord:
    """The description that a file of the cache has of itself.

    Attributes:
        model: The model's name.
        file: The model's path; "" if it was given as bytes.
        providers: The providers that may run its nodes, best first.
        inputs: With the sizes that the plan was made for.
    """

    model: str = ""
    file: str = ""
    providers: tuple[str, ...] = ()
    inputs: tuple[NodeArg, ...] = ()


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache, as `py-ort cache` shows it."""

    path: Path
    size: int
    used: float

    @property
    def key(self) -> str:
        """The key of the entry."""
        return self.path.name.removesuffix(_SUFFIX)

    def about(self) -> CacheRecord:
        """Return the file's record; an empty one if the file cannot be read."""
        try:
            header = read_header(self.path)
            return CacheRecord(
                str(header["metadata"]["graph_name"]),
                str(header["source"]),
                tuple(map(str, header["placement"]["providers"])),
                tuple(NodeArg(str(arg["name"]), str(arg["type"]), _dims(arg["dims"])) for arg in header["inputs"]),
            )
        except Exception:  # as in `PlanCache.load`
            return CacheRecord()


def _dims(found: Any) -> list[int | str | None] | None:
    return None if found is None else list(found)


class PlanCache:
    """A folder of plans.

    Args:
        folder: Made when something is stored.
        max_bytes: How much it may hold.
    """

    def __init__(self, folder: Path, max_bytes: int = _DEFAULT_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._writers: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._store_level = logging.WARNING  # of the first failure: the next plans most likely fail as well
        self._unchecked: tuple[int, int] | None = None  # plans and bytes stored since the folder was looked through

    @classmethod
    def default(cls) -> PlanCache | None:
        """Return the user's cache, or None where PY_ORT_CACHE is "0" or the user has no home.

        PY_ORT_CACHE_DIR names its folder (default: `py_ort/plans` in the user's cache folder), PY_ORT_CACHE_MB how
        much it may hold.

        Raises:
            InvalidArgument: PY_ORT_CACHE_MB is not a number.
        """
        if os.environ.get("PY_ORT_CACHE", "1").lower() in ("0", "off", "no"):
            return None
        named = os.environ.get("PY_ORT_CACHE_DIR")
        size = os.environ.get("PY_ORT_CACHE_MB")
        if size is not None and not re.fullmatch("[0-9]{1,9}", size):
            raise InvalidArgument(f"PY_ORT_CACHE_MB={size!r}: a number of megabytes, like 4096")
        folder = Path(named) if named else _users_folder()
        return None if folder is None else _shared(folder, int(size) << 20 if size else _DEFAULT_BYTES)

    @property
    def notes(self) -> Path:
        """The folder of noted hashes; see `file_digest`."""
        return self.folder / "digests"

    def load(self, key: str, folder: DataFolder | None) -> CachedModel | None:
        """Return the plan with this key; None if there is none, or it cannot be used.

        Args:
            key: From `cache_key`.
            folder: The folder of the model's external data.
        """
        for name in [key] if folder is None else [key, _in_folder(key, folder)]:
            path = self.folder / (name + _SUFFIX)
            try:
                found = read_entry(path, folder)
            except (FileNotFoundError, NotADirectoryError):  # where nothing can be stored, `_store` warns
                continue
            except Exception as e:  # a damaged or foreign file may contain anything
                self.reject(path, e)
                continue
            if found is None:  # the external data changed
                continue
            with contextlib.suppress(OSError):  # evicted this moment: the open file stays
                os.utime(path)
            return found
        return None

    def reject(self, path: Path, why: Exception) -> None:
        """Remove a file that cannot be used, with a warning."""
        words = str(why) if isinstance(why, (DamagedEntry, OSError)) else f"{type(why).__name__}: {why}"
        _log.warning("the cached plan %s is not used: %s", path, words)
        with contextlib.suppress(OSError):  # the folder may be for reading only
            _remove(path)

    def store(self, key: str, compiled: CompiledModel, loaded: LoadedModel, source: str = "") -> threading.Thread:
        """Store a plan in a thread, for which the process waits before it ends.

        Args:
            key: From `cache_key`.
            compiled: The plan.
            loaded: Its model.
            source: The model's file, for people.
        """
        name = _in_folder(key, loaded.folder) if loaded.folder is not None and loaded.external else key
        arguments = name, compiled, loaded.external, source
        thread = threading.Thread(target=self._store, args=arguments, name="py_ort-cache")
        self._writers = [writer for writer in self._writers if writer.is_alive()] + [thread]
        thread.start()
        return thread

    def flush(self) -> None:
        """Wait until all plans are written."""
        for writer in self._writers:
            writer.join()

    def _store(self, name: str, compiled: CompiledModel, external: Mapping[str, FileStamp], source: str) -> None:
        try:
            if sum(p.size for p in compiled.weights.pieces() if p.location not in external) > self.max_bytes // 2:
                return  # it would push out everything else
            make_private(self.folder, own=self.folder == _users_folder())
            with replacing(self.folder / (name + _SUFFIX)) as file:
                write_entry(file, compiled, external, source, name)
                size = file.tell()
            if self._is_time_to_look(size):
                self._evict()
        except OSError as e:
            _log.log(self._store_level, "the plan was not stored in %s: %s", self.folder, e)
            self._store_level = logging.DEBUG

    def entries(self) -> list[CacheEntry]:
        """Return all entries, also those that are still being written, the most recently used first."""
        self.flush()
        return self._stored()

    def _stored(self) -> list[CacheEntry]:
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            try:
                stat = path.lstat()
            except OSError:
                continue  # another process removed the file
            found.append(CacheEntry(path, stat.st_size, stat.st_mtime))
        return sorted(found, key=lambda entry: -entry.used)

    def remove(self, entries: Iterable[CacheEntry]) -> None:
        """Remove some of them."""
        self.flush()
        for entry in entries:
            _remove(entry.path)

    def clear(self) -> int:
        """Remove everything; return how many plans there were."""
        found = self.entries()
        for path in [*(entry.path for entry in found), *self.notes.glob("*"), *self._unfinished()]:
            _remove(path)
        return len(found)

    def _is_time_to_look(self, size: int) -> bool:
        """Note a plan of this size; return whether the folder may have grown too large."""
        with self._lock:
            plans, held = self._unchecked or (_UNCHECKED, 0)
            due = plans >= _UNCHECKED or held + size > self.max_bytes // _UNCHECKED_SHARE
            self._unchecked = (0, 0) if due else (plans + 1, held + size)
            return due

    def _evict(self) -> None:
        held = 0
        for entry in self._stored():
            held += entry.size
            if held > self.max_bytes:
                _remove(entry.path)
        for path in self._unfinished():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED:
                    path.unlink()
        notes = sorted(self.notes.glob("*"), key=lambda path: path.name)
        for path in notes[1000:]:  # they are small, and cheap to make again
            _remove(path)

    def _unfinished(self) -> list[Path]:
        return [*self.folder.glob(f"*{UNFINISHED}"), *self.notes.glob(f"*{UNFINISHED}")]


def _users_folder() -> Path | None:
    try:
        return user_caches() / "py_ort/plans"
    except RuntimeError as e:
        _log.warning("plans are not cached: %s Name a folder by PY_ORT_CACHE_DIR", e)
        return None


@cache
def _shared(folder: Path, max_bytes: int) -> PlanCache:
    return PlanCache(folder, max_bytes)


def cache_key(model: str, providers: Sequence[str], options: CompileOptions, devices: str = "") -> str:
    """Return the key of a plan.

    Args:
        model: Hash of the model's file.
        providers: Canonical names, in order.
        options: How it is compiled.
        devices: Key of the devices that it is made for, if they were asked; see `placement.devices`.
    """
    told = json.dumps([model, list(providers), options.to_json(), devices, _user_kernels(), _version()], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def _in_folder(key: str, folder: DataFolder) -> str:
    """The same model file in two folders may have different external data."""
    return hashlib.sha256(os.fsencode(f"{key}@{folder.path.absolute()}")).hexdigest()


def _remove(path: Path) -> None:
    """Remove a file or folder that has the name of a cache file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _user_kernels() -> list[UserDefinition]:
    """Return the definitions of users' kernels, which are part of a plan's key."""
    return [declared.kernel.definition for _, declared in sorted(REGISTERED.items()) if declared.kernel is not None]


@cache
def _version() -> Any:
    """Return the versions of all code that determines a plan: py_ort's, its kernels', and its libraries'."""
    sources = (file for folder in (PACKAGE, *FOLDERS) for file in folder.rglob("*.py"))
    files = [*sources, *ASSETS.glob("kernels.*.json")]
    stamps = sorted((os.path.relpath(f, PACKAGE), f.stat().st_size, f.stat().st_mtime_ns) for f in files)
    ours = hashlib.sha256(repr(stamps).encode()).hexdigest()
    return [ours, *(importlib.metadata.version(name) for name in ("onnx", "onnx-ir", "numpy"))]

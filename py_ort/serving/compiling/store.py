"""Exported models by key: compiled once for all requests, and kept until there is no more room."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from py_ort.browser.guard import Guard
from py_ort.exceptions import Fail, PyOrtError
from py_ort.exporting.compile_process import CompileProcess
from py_ort.serving.compiling.metrics import Metrics
from py_ort.serving.compiling.objects import ObjectStore
from py_ort.serving.compiling.server_options import CompileServerOptions

#: Names of models' files, and of their further parts.
NAME = re.compile(r"[0-9a-f]{64}\.pyort(?:\.\d{1,4})?")
#: Seconds before a model that failed to compile is tried again, and the number of such models remembered.
_REMEMBERED, _MOST_REMEMBERED = 300.0, 1000


class Busy(Exception):
    """Too many models wait."""


@dataclass
class Job:
    """A model that is being compiled.

    Attributes:
        progress: The stage, its finished part, and its total.
        task: Ends when the model is in the store, with its key; its errors are the model's.
    """

    progress: tuple[str, int, int] = ("waiting", 0, 0)
    task: asyncio.Task[str] = field(init=False)


class Store:
    """A folder of exported models; used in the server's loop.

    Servers of several machines may share the folder, or the object store behind it.

    Args:
        options: Folder, limits, and how models are exported.
        metrics: Counts what happens.
        say: Told lines for the log.

    Raises:
        EngineError: The object store cannot be used.
        OSError: The folder cannot be written.
    """

    def __init__(self, options: CompileServerOptions, metrics: Metrics, say: Callable[[str], None]) -> None:
        options.folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._options = options.folder.resolve(), options
        self._objects = ObjectStore(options.objects) if options.objects else None
        self._places, self._threads = asyncio.Semaphore(options.jobs), ThreadPoolExecutor(options.jobs)
        self._metrics, self._say = metrics, say
        # Inside the store, so that complete files are only renamed. Deleted when this process ends.
        self._work = Guard(".work-", self._folder)
        self._jobs: dict[str, Job] = {}
        self._bringing: dict[str, asyncio.Task[bool]] = {}
        self._failed: dict[str, tuple[float, PyOrtError]] = {}
        self._processes: set[CompileProcess] = set()
        self._made = 0
        self._measure()

    def has_room(self, size: int) -> bool:
        """Return True if the disk has room for a model of this size and its export."""
        return shutil.disk_usage(self._folder).free > 2 * size

    def key(self, sha256: str) -> str:
        """Return the key of a model from the SHA-256 of its contents; each version of py_ort has other keys."""
        return self._options.export.key(sha256)

    async def file(self, name: str) -> Path | None:
        """Return a file of the store, None if there is none of that name."""
        path = self._folder / name
        if not NAME.fullmatch(name) or not (path.is_file() or await self._brought(name[:64])):
            return None
        return path if path.is_file() else None

    async def has(self, key: str) -> bool:
        """Return True if the model is there, which counts as a use."""
        path = await self.file(f"{key}.pyort")
        if path is None:
            return False
        with contextlib.suppress(OSError):  # the folder may belong to another user
            os.utime(path, (time.time(), path.stat().st_mtime))
        return True

    def job(self, key: str) -> Job | None:
        """Return the job that is compiling a model; None if there is none.

        Raises:
            PyOrtError: The model was tried recently, and cannot be compiled.
        """
        when, error = self._failed.get(key, (0.0, None))
        if error is not None and time.monotonic() - when < _REMEMBERED:
            raise error.again()
        return self._jobs.get(key)

    def compile(self, key: str, model: Path) -> Job:
        """Compile a model, unless that is under way.

        Args:
            key: From `key`.
            model: A file in a folder of `workspace`.

        Raises:
            Busy: Too many models wait.
            PyOrtError: The model was tried recently, and cannot be compiled.
        """
        if found := self.job(key):
            return found
        if len(self._jobs) >= self._options.jobs + self._options.waiting:
            raise Busy
        job = self._jobs[key] = Job()
        job.task = asyncio.create_task(self._compile(key, model, job))
        job.task.add_done_callback(lambda task: (self._jobs.pop(key), task.cancelled() or task.exception()))
        return job

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """Make an empty folder, which is deleted at the end; first await the jobs that compile its files."""
        self._made += 1
        folder = self._work.folder / str(self._made)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def close(self) -> None:
        """End all compilations."""
        for process in self._processes:
            process.end()
        under_way = [*(job.task for job in self._jobs.values()), *self._bringing.values()]
        await asyncio.gather(*under_way, return_exceptions=True)
        self._threads.shutdown()
        await self._work.end()

    async def _compile(self, key: str, model: Path, job: Job) -> str:
        self._metrics.add("waiting")
        try:
            await self._places.acquire()
        finally:
            self._metrics.add("waiting", -1)
        began = time.perf_counter()
        self._metrics.add("compiling")
        loop, process = asyncio.get_running_loop(), CompileProcess(self._options.export, self._options.limits)
        self._processes.add(process)

        def report(stage: str, done: int, total: int) -> None:
            job.progress = stage, done, total

        try:
            output = model.with_name(f"{key}.pyort")
            made = await loop.run_in_executor(self._threads, process.export, model, output, report)
            if self._objects:
                await self._keep(self._objects, made.files)
            self._take(made.files)
        except (PyOrtError, OSError) as e:
            error = e if isinstance(e, PyOrtError) else Fail(f"{type(e).__name__}: {e.strerror or e}")
            error.message = error.message.replace(repr(str(model)), "the model").replace(f"{model.parent}{os.sep}", "")
            self._metrics.add("failed_total")
            self._remember(key, error)
            words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
            self._say(f"{key[:12]}: {type(error).__name__}: {words}")  # names in a model may contain anything
            raise error from None
        else:
            seconds = time.perf_counter() - began
            self._metrics.add("compiled_total")
            self._metrics.add("compile_seconds_total", seconds)
            self._say(f"{key[:12]}: compiled in {seconds:.2f} s")
            return key
        finally:
            self._places.release()
            self._metrics.add("compiling", -1)
            self._processes.discard(process)
            await asyncio.to_thread(process.end)

    def _take(self, files: Sequence[Path]) -> None:
        for file in reversed(files):  # the first one says that all are there
            file.replace(self._folder / file.name)
        self._measure()

    async def _keep(self, objects: ObjectStore, files: Sequence[Path]) -> None:
        """Store a model also where other servers find it; without the model is only here."""
        try:
            await asyncio.to_thread(objects.put, files)
        except PyOrtError as e:
            self._say(e.message)

    async def _brought(self, key: str) -> bool:
        """Return True if the object store had the model; asked once for all who wait."""
        if self._objects is None:
            return False
        task = self._bringing.get(key)
        if task is None:
            task = self._bringing[key] = asyncio.create_task(self._bring(key, self._objects))
            task.add_done_callback(lambda _: self._bringing.pop(key))
        return await asyncio.shield(task)

    async def _bring(self, key: str, objects: ObjectStore) -> bool:
        with self.workspace() as folder:
            try:
                files = await asyncio.to_thread(objects.fetch, key, folder)
                self._take(files)
            except (PyOrtError, OSError) as e:
                self._say(str(e))
                return False
        self._metrics.add("brought_total", bool(files))
        return bool(files)

    def _remember(self, key: str, error: PyOrtError) -> None:
        self._failed[key] = time.monotonic(), error
        while len(self._failed) > _MOST_REMEMBERED:
            del self._failed[next(iter(self._failed))]

    def _measure(self) -> None:
        """Delete the least recently used files, if all together are too large."""
        found = []
        for file in self._folder.iterdir():
            with contextlib.suppress(OSError):  # another server has deleted it
                if NAME.fullmatch(file.name):
                    found.append((file.stat().st_atime, file.stat().st_size, file))
        size = sum(each for _, each, _ in found)
        for _, each, file in sorted(found):
            if size <= self._options.keep:
                break
            with contextlib.suppress(OSError):
                file.unlink()
                size -= each
                self._metrics.add("evicted_total")
        self._metrics.set("store_bytes", size)

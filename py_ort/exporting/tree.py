"""Exports a folder of models into another one, which mirrors it: in parallel, and only changed models."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from py_ort.boundary import public_function
from py_ort.compiler.load.digest import FileStamp, file_digest
from py_ort.compiler.load.model_files import DataFolder, OutsideFolder, replacing
from py_ort.compiler.package.format import is_package
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.exporting.compile_process import CompileProcess
from py_ort.exporting.export import Exported
from py_ort.exporting.job import ExportOptions

#: Name of the record in the output folder: the sources and hashes of its files.
RECORD = ".py_ort_export.json"


@dataclass(frozen=True)
class TreeRow:
    """The result for one model.

    Attributes:
        model: The ONNX file.
        file: The exported file.
        status: One of: the file was written, was up to date, could not be written.
        size: Bytes of the file and its parts.
        seconds: Duration of the export.
        error: The reason of a failure; "" without one.
        sources: The files that the export reads: the model, its external data, files of user kernels.
    """

    model: Path
    file: Path
    status: Literal["exported", "up to date", "failed"]
    size: int = 0
    seconds: float = 0.0
    error: str = ""
    sources: tuple[Path, ...] = ()


@public_function
def export_tree(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    options: ExportOptions | None = None,
    keep_names: bool = False,
    jobs: int = 0,
    force: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[TreeRow]:
    """Export each ONNX file of a folder, or one file, unless its export is up to date.

    The output folder mirrors the folder. It has a record of its files' sources (`.py_ort_export.json`): a model is
    exported again if its contents, its external data, the options, py_ort or the exported file have changed.

    Args:
        source: A folder, or an ONNX file.
        output: The folder to write to; made if necessary.
        options: Options of all exports.
        keep_names: Write `model.onnx` as `model.onnx`, for pages that request these URLs; by default as `model.pyort`.
        jobs: Number of models to compile at once, each in a separate process; 0: one for each CPU.
        force: Export models even if they are up to date.
        progress: Called with the stage, its finished part, and its total.

    Returns:
        A row for each model, in the order of their paths. A model that cannot be exported does not affect the others.

    Raises:
        InvalidArgument: There are no models, two of them would be the same file, or a model would be overwritten.
        OSError: The folder cannot be read or written.
    """
    options = options or ExportOptions()
    found = _models(Path(source), Path(output), keep_names)
    options.key("")  # wrong options are an error here
    tree = _Tree(Path(output), options, force, progress or (lambda stage, done, total: None))
    return tree.export(found, jobs or os.cpu_count() or 1)


def models_below(folder: Path) -> Iterator[Path]:
    """Yield the ONNX files below a folder, without hidden folders, installed packages, and exports."""
    for each in sorted(folder.rglob("*.onnx")):
        parts = each.relative_to(folder).parts
        hidden = any(part.startswith(".") or part == "node_modules" for part in parts)
        if not hidden and each.is_file() and not is_package(each):
            yield each


def _models(source: Path, output: Path, keep_names: bool) -> dict[Path, Path]:
    """Return the models, and for each the file to write."""
    if source.is_dir():
        inside = output.resolve() != source.resolve()  # exports inside the folder are not among its models
        each = [
            file for file in models_below(source) if not (inside and file.resolve().is_relative_to(output.resolve()))
        ]
        named = {file: output / file.relative_to(source) for file in each}
    else:
        named = {source: output / source.name}
    if not named:
        raise InvalidArgument(f"there is no .onnx file in {source}")
    if not keep_names:
        named = {model: file.with_suffix(".pyort") for model, file in named.items()}
    writers: dict[Path, Path] = {}
    for model, file in named.items():
        other = writers.setdefault(file, model)
        if other != model:
            raise InvalidArgument(f"{other} and {model} would both be {file}: give one of them another name")
        if file.exists() and file.samefile(model):
            raise InvalidArgument(f"{file} would take the place of the model itself: write to another folder")
    return named


class _Tree:
    def __init__(
        self, output: Path, options: ExportOptions, force: bool, progress: Callable[[str, int, int], None]
    ) -> None:
        self._output, self._options, self._force, self._progress = output, options, force, progress
        self._record: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):  # missing, or damaged
            self._record = dict(json.loads((output / RECORD).read_text()))
        self._lock = threading.Lock()

    def export(self, models: Mapping[Path, Path], jobs: int) -> list[TreeRow]:
        rows: dict[Path, TreeRow] = {}
        idle: queue.SimpleQueue[CompileProcess] = queue.SimpleQueue()
        processes = [CompileProcess(self._options) for _ in range(min(jobs, len(models)))]
        for process in processes:
            idle.put(process)

        def one(model: Path) -> TreeRow:
            process = idle.get()
            try:
                return self._one(process, model, models[model])
            finally:
                idle.put(process)

        with ThreadPoolExecutor(len(processes)) as pool:
            try:
                waiting = [pool.submit(one, model) for model in models]
                for future in as_completed(waiting):
                    row = future.result()
                    rows[row.model] = row
                    self._progress("exporting models", len(rows), len(models))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                for process in processes:
                    process.end()
        return [rows[model] for model in models]

    def _one(self, process: CompileProcess, model: Path, file: Path) -> TreeRow:
        began = time.perf_counter()
        try:
            key = self._options.key(file_digest(model))
            if not self._force and (size := self._up_to_date(model, file, key)) is not None:
                return TreeRow(model, file, "up to date", size, sources=self._sources(model, file))
            file.parent.mkdir(parents=True, exist_ok=True)
            made = process.export(model, file)
            size = self._note(file, key, model, made)
        except (PyOrtError, OSError) as e:
            text = f"{type(e).__name__}: {e}"
            seconds = time.perf_counter() - began
            return TreeRow(model, file, "failed", 0, seconds, text, self._sources(model, file))
        seconds = time.perf_counter() - began
        return TreeRow(model, file, "exported", size, seconds, sources=self._sources(model, file))

    def _sources(self, model: Path, file: Path) -> tuple[Path, ...]:
        """Return the files that an export reads; the external data are those of the last export."""
        known: Any = self._record.get(self._name(file))
        external: list[str] = []
        with contextlib.suppress(TypeError, KeyError):  # no export yet, or a damaged record
            external = sorted(known["external"])
        return (model, *(model.parent / each for each in external), *map(Path, self._options.kernels))

    def _up_to_date(self, model: Path, file: Path, key: str) -> int | None:
        """Return the size of an up-to-date export, None if it must be made."""
        known: Any = self._record.get(self._name(file))
        try:
            if known["key"] != key or known["model"] != os.path.relpath(model, self._output):
                return None
            if any(_stamp(model, location) != stamp for location, stamp in known["external"].items()):
                return None
            files = {file.with_name(name): contents for name, contents in known["files"].items()}
            if any(file_digest(each) != contents for each, contents in files.items()):
                return None
            return _size(files)
        except (TypeError, KeyError, AttributeError, OSError, OutsideFolder):  # no record, or a missing file
            return None

    def _note(self, file: Path, key: str, model: Path, made: Exported) -> int:
        """Record a file's sources; return its size."""
        files = {each.name: file_digest(each) for each in made.files}
        external = {location: stamp.to_json() for location, stamp in made.external.items()}
        entry = {"key": key, "model": os.path.relpath(model, self._output), "files": files, "external": external}
        with self._lock:
            self._record[self._name(file)] = entry
            with replacing(self._output / RECORD, 0o666) as out:
                out.write(json.dumps(self._record, indent=1, sort_keys=True).encode())
        return _size(made.files)

    def _name(self, file: Path) -> str:
        return file.relative_to(self._output).as_posix()


def _size(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def _stamp(model: Path, location: str) -> dict[str, Any]:
    folder = DataFolder.of(model)
    assert folder is not None
    with folder.open(location) as file:
        return FileStamp.of(file).to_json()

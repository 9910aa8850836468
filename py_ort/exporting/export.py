"""`py_ort.export`: compiles a model for pages, into one file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from py_ort import __version__
from py_ort.boundary import public_function, typed_errors
from py_ort.compiler.package.format import ALIGNMENT
from py_ort.compiler.package.write import Target, write_package
from py_ort.exceptions import InvalidArgument
from py_ort.exporting.page import write_page
from py_ort.providers import DEFAULT, with_cpu

if TYPE_CHECKING:
    from py_ort.compiler import CompiledModel, CompileOptions
    from py_ort.compiler.load.digest import FileStamp
    from py_ort.runtime.options import SessionOptions

#: Browsers' buffers, and many servers, are limited to 2 GiB.
_WHOLE = 2**31 - 2**20
_PART = 2**30


@public_function
def export(
    model: str | os.PathLike[str] | bytes,
    output: str | os.PathLike[str],
    *,
    providers: Sequence[str] = DEFAULT,
    shapes: Sequence[Mapping[str, Sequence[int]]] = (),
    options: SessionOptions | None = None,
    part_size: int | None = None,
    page: bool = False,
    runtime: Literal["full", "minimal"] = "full",
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Path]:
    """Write a model as a `.pyort` file, which pages run without Python and `InferenceSession` opens, too.

    It has a plan for each provider, with wasm for the nodes that the provider cannot run, and the weights once.

    Args:
        model: An ONNX file, or its bytes.
        output: The file to write, or a folder for NAME.pyort of a model called NAME.onnx. An existing file is replaced
            when the new one is complete.
        providers: Providers to write plans for; a page uses the first one that it has.
        shapes: Further plans, each for one shape of each input ([N, C, H, W] or the model's axes): they have less to
            resolve in the page. The plans for all shapes are always included.
        options: Options of the sessions that this replaces: optimization level, free dimensions, configuration entries.
        part_size: The largest size of a file in bytes, a multiple of 64. Default: one file up to 2 GiB, parts of 1 GiB
            beyond. Further parts are called NAME.pyort.1, NAME.pyort.2, …
        page: Write a static page beside it, too, which runs it: see `py_ort.exporting.write_page`.
        runtime: Kernels in the page's runtime: all, or with "minimal" those of the models in its folder.
        progress: Called with what is done, how much of it and of how much.

    Returns:
        The model's files, the one to open first.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: The model cannot be read, is wrong, or has nodes
            without a kernel.
        InvalidArgument: An argument is wrong.
        OSError: The file cannot be written.
    """
    from py_ort.runtime.options import SessionOptions

    if runtime not in ("full", "minimal"):
        raise InvalidArgument(f"runtime is 'full' or 'minimal', not {runtime!r}")
    if runtime == "minimal" and not page:
        raise InvalidArgument("runtime='minimal' is for page=True, which writes a runtime")
    path, options = _file(model, Path(os.fsdecode(output))), options or SessionOptions()
    files = export_model(model, path, providers, shapes, options, part_size, progress).files
    if page:
        with typed_errors("writing the page", let=(OSError,)):
            write_page(path, runtime == "minimal")
    return files


@dataclass(frozen=True)
class Exported:
    """An exported model.

    Attributes:
        files: The model's files, the one to open first.
        external: The model's files of external data, by location.
    """

    files: list[Path]
    external: Mapping[str, FileStamp]


def targets(providers: Sequence[str], shapes: Sequence[Mapping[str, Sequence[int]]]) -> list[Target]:
    """Return the targets of plans: each provider, for all shapes and for each set of shapes.

    Raises:
        InvalidArgument: A provider is unknown, or has no export.
    """
    from py_ort.providers.resolution import resolve

    if not providers or isinstance(providers, str):
        raise InvalidArgument(f"providers is a list of names: {list(DEFAULT)}, or one of them")
    wanted = resolve(providers)
    if wanted.dropped:
        name, why = next(iter(wanted.dropped.items()))
        raise InvalidArgument(f"{name} cannot be exported for: {why}")
    return [Target(tuple(with_cpu(name)), shape) for name in wanted.providers for shape in ({}, *shapes)]


def compile_options_for(target: Target, options: SessionOptions) -> CompileOptions:
    """Return the options with which the plan for a target is compiled."""
    from py_ort.runtime.compiling import compile_options

    return replace(compile_options({}, options), input_shapes={**options.input_shapes, **target.shapes})


def export_model(
    model: str | os.PathLike[str] | bytes,
    path: Path,
    providers: Sequence[str],
    shapes: Sequence[Mapping[str, Sequence[int]]],
    options: SessionOptions,
    part_size: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    alone: bool = False,
) -> Exported:
    """Export a model like `export`, which explains the arguments; also return the files of external data.

    Args:
        alone: True if the model may have no external data.
    """
    from py_ort.compiler import compile_model
    from py_ort.compiler.load import load_model
    from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
    from py_ort.runtime.session_model import Origin

    if part_size is not None and (part_size < ALIGNMENT or part_size % ALIGNMENT):
        raise InvalidArgument(f"part_size is a multiple of {ALIGNMENT} bytes, not {part_size}")
    report = progress or (lambda stage, done, total: None)
    each = targets(providers, shapes)
    origin = Origin(model, options.config_entries.get(DATA_FOLDER_ENTRY, ""))
    folder = replace(origin.folder, closed=True) if alone and origin.folder else origin.folder
    digest = ""
    with contextlib.suppress(OSError, ValueError):  # the error occurs when the model is read
        digest = origin.digest(None)
    compiled: list[tuple[Target, CompiledModel]] = []
    external: Mapping[str, FileStamp] = {}
    for i, target in enumerate(each):
        report(f"compiling for {target}", i, len(each))
        loaded = load_model(origin.source, folder=folder)  # compiling changes the model
        external = loaded.external
        origin.settle(None, external)
        if digest:
            loaded.identify(digest)
        compiled.append(
            (target, compile_model(loaded, providers=target.providers, options=compile_options_for(target, options)))
        )
    with typed_errors("writing the file", let=(OSError,)):
        size = part_size or (_WHOLE if sum(c.weights.size for _, c in compiled) < _WHOLE else _PART)
        files = write_package(path, f"py_ort {__version__}", compiled, size, lambda d, t: report("writing", d, t))
    return Exported(files, external)


def _file(model: str | os.PathLike[str] | bytes, output: Path) -> Path:
    if not output.is_dir():
        return output
    if isinstance(model, bytes):
        raise InvalidArgument(f"{output} is a folder, and a model of bytes has no name: give the file's")
    return output / f"{Path(os.fsdecode(model)).stem}.pyort"

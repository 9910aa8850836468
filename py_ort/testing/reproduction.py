"""Command lines that repeat a failure, for a terminal."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.browser.browser_options import BrowserOptions
from py_ort.compiler.load import read_proto
from py_ort.compiler.package.format import is_package
from py_ort.providers import canonical_provider
from py_ort.runtime.engines import OURS
from py_ort.testing.case import Case
from py_ort.testing.split_model import kernels_of
from py_ort.user_kernels import registered_kernels
from py_ort.user_kernels.registry import kernel_file

if TYPE_CHECKING:
    import pytest

    from py_ort.testing.compare import InBrowser
    from py_ort.testing.runner import RunnerOptions


def of_case(case: Case, options: RunnerOptions, sources: Sequence[str]) -> str:
    """Return a command that runs a case once more: every value of its model, if that is a file.

    Args:
        case: The case.
        options: How it was run.
        sources: As for `load_cases`.
    """
    provider = canonical_provider(options.providers[0])
    if not case.compared or case.trouble or options.feeds:
        alone = ["conformance", *sources, "--filter", f"^{re.escape(case.id)}$"]
        return _command(alone, provider, options.engine, options.browser, _sizes(options))
    given = {item.partition("=")[0] for item in case.compared[2::2]}
    steps = case.tolerance_on(provider).steps
    more = [*(["--steps", str(steps)] if steps else []), *_sizes(options, given)]
    return _command(["compare", *case.compared], provider, options.engine, options.browser, more)


def of_model(
    model: str | os.PathLike[str] | bytes,
    feeds: Mapping[str, Any],
    side: InBrowser,
    folder: Callable[[], Path],
    tolerance: float | None = None,
    steps: int = 0,
) -> str:
    """Return the command that compares every value of a model; "" if no file can have the model or its feeds.

    A comment at its end names arguments of the session, and user kernels, that the command lacks.

    Args:
        model: An ONNX file.
        feeds: Arrays by input name.
        side: Where it ran.
        folder: Returns a folder for the feeds.
        tolerance: See `closeness`.
        steps: See `closeness`.
    """
    arrays = {name: np.asarray(array) for name, array in feeds.items()}
    if isinstance(model, bytes) or is_package(model) or any(array.dtype.kind == "V" for array in arrays.values()):
        return ""
    at = folder() if arrays else Path()
    files = {name: save_array(at, name, array) for name, array in arrays.items()}
    more = [] if tolerance is None else ["--tolerance", f"{tolerance:g}"]
    more += ["--steps", str(steps)] if steps else []
    kernels = kernels_of(read_proto(model)).values() if registered_kernels() else ()
    there = dict.fromkeys(file for kernel in kernels if (file := kernel_file(kernel)))
    more += [text for file in there for text in ("--kernels", os.path.relpath(file))]
    lacks = [f"--kernels FILE with {kernel.name}" for kernel in kernels if not kernel_file(kernel)]
    lacks += [f"{name}=" for name in side.options if name not in ("browser", "engine", "providers")]
    browser = BrowserOptions.of(side.options["browser"])
    command = _command(["compare", *arguments(model, files)], side.provider, side.engine, browser, more)
    return f"{command}  # without {', '.join(lacks)}" if lacks else command


def of_test(test: str, target: Mapping[str, str], config: pytest.Config) -> str:
    """Return the command that runs a test once more.

    Args:
        test: Its id, which names a file as seen from the root folder.
        target: Options that choose where it runs, with their values.
        config: The configuration of the run that failed.
    """
    name = os.path.relpath(config.rootpath / test, config.invocation_params.dir)
    options = [f"--{option}={value}" for option, value in target.items()]
    return shlex.join(["pytest", name, *options])


def arguments(
    model: str | os.PathLike[str],
    files: Mapping[str, Path],
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """Return the arguments of commands for a model, and for its inputs."""
    inputs = [("--input", f"{name}={file}") for name, file in files.items()]
    return (os.fspath(model), *(text for pair in [*inputs, *_shapes(shapes or {}, dims or {})] for text in pair))


def save_array(folder: Path, name: str, array: np.ndarray) -> Path:
    """Write an array as --input takes it, strings included; return the file."""
    file = folder / f"{file_name(name)}.npy"
    np.save(file, array.astype(str) if array.dtype.kind == "O" else array)
    return file


def file_name(name: str) -> str:
    """Return the name of a value as a file may have it."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)


def _command(
    words: Iterable[str], provider: str, engine: str, browser: BrowserOptions, more: Iterable[str] = ()
) -> str:
    usual = BrowserOptions()
    where: list[Any] = ["--provider", provider]
    where += ["--engine", engine] if engine != OURS else []
    for name, value in (("browser", browser.name), ("webgpu", browser.webgpu), ("launcher", browser.launcher)):
        if value != getattr(usual, name):
            where += [f"--{name}", value]
    return shlex.join(["py-ort", *words, *where, *more])


def _shapes(shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int]) -> list[tuple[str, str]]:
    sizes = [("--shape", f"{name}={'x'.join(map(str, shape))}") for name, shape in shapes.items()]
    return sizes + [("--dim", f"{name}={size}") for name, size in dims.items()]


def _sizes(options: RunnerOptions, known: Iterable[str] = ()) -> list[str]:
    """Return the flags of sizes and kernels, without those of known names."""
    names = set(known)
    pairs = [pair for pair in _shapes(options.shapes, options.dims) if pair[1].rpartition("=")[0] not in names]
    pairs += [("--kernels", os.fspath(file)) for file in options.kernels]
    return [text for pair in pairs for text in pair]

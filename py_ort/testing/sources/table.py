"""A user's table of cases: TOML, or Python.

TOML: a table [[case]] for each model, whose files are named as seen from the table's folder:

    [[case]]
    model = "detection.onnx"                        # all else is optional
    id = "detection"                                # default: the file's stem
    inputs = { x = "x.npy" }                        # .npy, or .pb as in ONNX's test data; default: random numbers
    outputs = { y = "y.npy" }                       # expected; default: those of native onnxruntime
    shapes = { x = [1, 3, 320, 320] }               # of random inputs
    dims = { batch = 1 }                            # dimensions that have a name
    rtol = 1e-3
    atol = 1e-3
    steps = 1                                       # largest difference of integers
    skip = "why it is not run"

Python: a file with `CASES`, or a function `cases()`, that gives cases: `py_ort.testing.model_case(…)` makes them of
models, `py_ort.testing.Case` of anything.
"""

from __future__ import annotations

import os
import runpy
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from py_ort.boundary import public_function
from py_ort.compiler.load import read_proto
from py_ort.compiler.load.model_files import open_file
from py_ort.exceptions import InvalidArgument
from py_ort.suggestion import did_you_mean
from py_ort.testing.case import Case, DataSet, Tolerance
from py_ort.testing.model_inputs import ModelInputs
from py_ort.testing.native_model import NativeModel
from py_ort.testing.random_feeds import candidates
from py_ort.testing.reproduction import arguments
from py_ort.testing.sources.model_folder import TOLERANCE

SUFFIXES = (".toml", ".py")
_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "model": str,
    "id": str,
    "inputs": dict,
    "outputs": dict,
    "shapes": dict,
    "dims": dict,
    "rtol": (int, float),
    "atol": (int, float),
    "steps": int,
    "skip": str,
}


def cases(file: Path) -> list[Case]:
    """Return the cases of a table; one whose files cannot be read is a case that fails.

    Raises:
        InvalidArgument: It is no such table.
    """
    return _of_python(file) if file.suffix == ".py" else [_case(file, entry) for entry in _entries(file)]


def _of_python(file: Path) -> list[Case]:
    try:
        names = runpy.run_path(str(file))
        found = list(names["cases"]() if callable(names.get("cases")) else names["CASES"])
    except KeyError as e:
        raise InvalidArgument(f"{file}: has no {e}: a table in Python has CASES, or a function cases()") from e
    except Exception as e:  # a file of Python may raise anything
        raise InvalidArgument(f"{file}: {type(e).__name__}: {e}") from e
    for case in found:
        if not isinstance(case, Case):
            raise InvalidArgument(f"{file}: a case is a py_ort.testing.Case, not {type(case).__name__}")
    return found


def _entries(file: Path) -> list[dict[str, Any]]:
    try:
        tables = tomllib.loads(file.read_text())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise InvalidArgument(f"{file}: {e}") from e
    entries = tables.get("case")
    if len(tables) != 1 or not isinstance(entries, list) or not entries:
        raise InvalidArgument(f"{file}: tables [[case]] are expected, and nothing else")
    for number, entry in enumerate(entries):
        for name, value in entry.items():
            if name not in _FIELDS:
                raise InvalidArgument(
                    f"{file}: case {number} has an unknown field {name!r}{did_you_mean(name, _FIELDS)}"
                )
            if not isinstance(value, _FIELDS[name]):
                raise InvalidArgument(f"{file}: case {number}: {name} = {value!r} is of another type")
        if "model" not in entry:
            raise InvalidArgument(f"{file}: case {number} names no model")
    return entries


def _case(file: Path, entry: dict[str, Any]) -> Case:
    model, skip = file.parent / entry["model"], entry.get("skip", "")
    name, tolerance = (
        entry.get("id", model.stem),
        replace(TOLERANCE, **{key: entry[key] for key in ("rtol", "atol", "steps") if key in entry}),
    )
    if skip:
        return Case(name, model, (), {"": tolerance}, skip)
    try:
        inputs, outputs = (
            {tensor: _array(file.parent / path) for tensor, path in entry.get(kind, {}).items()}
            for kind in ("inputs", "outputs")
        )
        shapes, dims = entry.get("shapes"), entry.get("dims")
        files = {tensor: file.parent / path for tensor, path in entry.get("inputs", {}).items()}
        case = model_case(model, name, inputs, outputs, shapes=shapes, dims=dims, tolerance=tolerance)
        return replace(case, compared=arguments(model, files, shapes, dims))
    except Exception as e:  # a file may hold anything
        return Case(name, model, (), {"": tolerance}, trouble=f"{type(e).__name__}: {e}")


@public_function
def model_case(
    model: str | os.PathLike[str],
    id: str = "",
    inputs: Mapping[str, np.ndarray] | None = None,
    outputs: Mapping[str, np.ndarray] | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    tolerance: Tolerance = TOLERANCE,
) -> Case:
    """Return the case of a model: its inputs and expected outputs.

    Args:
        model: An ONNX file.
        id: The case's; default: the file's stem.
        inputs: By name; the others are random numbers.
        outputs: Expected outputs by name, others are ignored; default: all outputs of native onnxruntime.
        shapes: Shapes of random inputs, by name.
        dims: Numbers for dimensions that have a name.
        tolerance: How near outputs must be.

    Raises:
        PyOrtError: The model cannot be read, or has no such input or output.
        InvalidArgument: No feeds can be made, or native onnxruntime is not installed or refuses them.
    """
    file = Path(model)
    described = ModelInputs.of(file)
    names = [value.name for value in read_proto(file).graph.output]
    given, wanted = inputs or {}, outputs or {}
    for what, named, known in (
        ("input", [*given, *(shapes or {})], [arg.name for arg in (*described.args, *described.overridable)]),
        ("output", [*wanted], names),
    ):
        for name in named:
            if name not in known:
                raise InvalidArgument(f"{file} has no {what} {name!r}{did_you_mean(name, known)}")
    tried = candidates(described.args, shapes, given=given, dims=dims, values=described.accepted)
    compared = () if given else arguments(file, {}, shapes, dims)
    return Case(id or file.stem, file, [_data(file, tried, wanted)], {"": tolerance}, compared=compared)


def _data(model: Path, tried: Iterator[dict[str, np.ndarray]], wanted: Mapping[str, np.ndarray]) -> DataSet:
    """Return the first feeds that the model accepts, with expected outputs."""
    if wanted:
        return DataSet(next(tried), list(wanted.values()), list(wanted))
    native = NativeModel(model)
    if found := native.first_taken(tried):
        feeds, outputs = found
        return DataSet(feeds, list(outputs.values()))
    raise InvalidArgument(f"nothing to compare with: {native.trouble}. Name expected outputs, or give inputs or shapes")


def _array(file: Path) -> np.ndarray:
    with open_file(file) as opened:
        if file.suffix == ".pb":
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(opened.read()))
        array: np.ndarray = np.load(opened)
        return array

"""Folders in the form of ONNX's model tests: a .onnx file beside test_data_set_N/{input,output}_K.pb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import onnx
from onnx import numpy_helper

from py_ort.compiler import NodeArg
from py_ort.compiler.load import read_proto
from py_ort.compiler.load.external import ExternalData
from py_ort.compiler.load.model_files import DataFolder, open_file
from py_ort.compiler.package.format import is_package
from py_ort.compiler.package.read import Package
from py_ort.testing.case import Case, DataSet, Tolerance
from py_ort.testing.reproduction import arguments

#: Tolerance of models whose data sets have none.
TOLERANCE = Tolerance(1e-3, 1e-3)


def cases(folder: Path) -> list[Case]:
    """Return a case for each model below a folder that has data sets. Its id is its folder, as seen from that one, or
    that one's name; and its own name too where there are several.
    """
    models = [
        model
        for model in sorted((*folder.rglob("*.onnx"), *folder.rglob("*.pyort")))
        if any(model.parent.glob("test_data_set_*"))
    ]
    in_folder = Counter(model.parent for model in models)
    return [_case(folder, model, in_folder[model.parent] > 1) for model in models]


def _case(root: Path, path: Path, has_siblings: bool) -> Case:
    name = path.parent.relative_to(root).as_posix() if path.parent != root else root.resolve().name
    if has_siblings:
        name += f"/{path.stem}"
    try:
        sets, trouble = data_sets(path), ""
    except Exception as e:  # a file may hold anything
        sets, trouble = [], f"{type(e).__name__}: {e}"
    if is_package(path):
        return Case(name, path.read_bytes(), sets, {"": TOLERANCE}, trouble=trouble)
    return Case(name, path, sets, {"": TOLERANCE}, trouble=trouble, compared=() if trouble else _compared(path))


def _compared(path: Path) -> tuple[str, ...]:
    folder = min(path.parent.glob("test_data_set_*"))
    inputs = zip(_model(path)[0], _files(folder, "input"), strict=False)
    return arguments(path, {name: file for (name, kind), file in inputs if kind.HasField("tensor_type")})


def data_sets(path: Path) -> list[DataSet]:
    """Return the data sets beside a model.

    Raises:
        PyOrtError: The model cannot be read, or a file has external data elsewhere.
        Exception: A file holds something else than a value.
    """
    inputs, outputs = _exported(path) if is_package(path) else _model(path)
    return [
        DataSet(
            {name: _read(file, kind) for (name, kind), file in zip(inputs, _files(folder, "input"), strict=False)},
            [_read(file, kind) for (_, kind), file in zip(outputs, _files(folder, "output"), strict=False)],
        )
        for folder in sorted(path.parent.glob("test_data_set_*"))
    ]


_Values: TypeAlias = "list[tuple[str, onnx.TypeProto]]"


def _model(path: Path) -> tuple[_Values, _Values]:
    """Its inputs and outputs."""
    graph = read_proto(path).graph
    given = {initializer.name for initializer in graph.initializer}
    inputs = [value for value in graph.input if value.name not in given]
    return [(v.name, v.type) for v in inputs], [(v.name, v.type) for v in graph.output]


def _exported(path: Path) -> tuple[_Values, _Values]:
    header = Package(path.read_bytes()).header

    def kind(arg: NodeArg) -> onnx.TypeProto:
        proto = onnx.TypeProto()
        if arg.type.startswith("seq("):
            proto.sequence_type.SetInParent()
        elif arg.type.startswith("optional("):
            proto.optional_type.SetInParent()
        return proto

    return [(a.name, kind(a)) for a in header.inputs], [(a.name, kind(a)) for a in header.outputs]


def _files(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}_*.pb"), key=lambda file: int(file.stem.rpartition("_")[2]))


def _read(file: Path, kind: onnx.TypeProto) -> Any:
    message, to_value = _forms(kind)
    with open_file(file) as opened:
        message.ParseFromString(opened.read())
    ExternalData(DataFolder.of(file)).fill(message)
    return to_value(message)


def _forms(kind: onnx.TypeProto) -> tuple[Any, Callable[[Any], Any]]:
    if kind.HasField("sequence_type"):
        return onnx.SequenceProto(), numpy_helper.to_list
    if kind.HasField("optional_type"):
        return onnx.OptionalProto(), numpy_helper.to_optional
    return onnx.TensorProto(), numpy_helper.to_array

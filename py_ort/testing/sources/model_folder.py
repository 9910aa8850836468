"""Folders in the form of ONNX's model tests: a .onnx file beside test_data_set_N/{input,output}_K.pb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

from py_ort.compiler.load import read_whole
from py_ort.compiler.load.external import ExternalData
from py_ort.compiler.load.files import DataFolder, open_file
from py_ort.testing.case import Case, DataSet, Tolerance


def cases(folder: Path) -> list[Case]:
    """Return a case for each model below a folder that has data sets. Its id is its folder, as seen from that one, or
    that one's name; and its own name too where there are several.
    """
    models = [model for model in sorted(folder.rglob("*.onnx")) if any(model.parent.glob("test_data_set_*"))]
    in_folder = Counter(model.parent for model in models)
    return [_case(folder, model, in_folder[model.parent] > 1) for model in models]


def _case(root: Path, path: Path, has_siblings: bool) -> Case:
    contents = read_whole(path)
    graph = onnx.ModelProto.FromString(contents).graph
    given = {initializer.name for initializer in graph.initializer}
    inputs = [value for value in graph.input if value.name not in given]
    sets = [
        DataSet(
            {value.name: _read(file, value.type) for value, file in zip(inputs, _files(folder, "input"), strict=False)},
            [_read(file, value.type) for value, file in zip(graph.output, _files(folder, "output"), strict=False)],
        )
        for folder in sorted(path.parent.glob("test_data_set_*"))
    ]
    name = path.parent.relative_to(root).as_posix() if path.parent != root else root.resolve().name
    if has_siblings:
        name += f"/{path.stem}"
    return Case(name, contents, sets, {"": Tolerance(1e-3, 1e-3)})


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

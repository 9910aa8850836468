"""From a path or bytes to the IR."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from py_ort.exceptions import InvalidGraph, InvalidProtobuf, NoSuchFile
from py_ort.load.metadata import ModelMetadata


@dataclass
class LoadedModel:
    """A model in the compiler's IR, and where it came from."""

    model: ir.Model
    metadata: ModelMetadata
    path: Path | None


def load_model(source: str | os.PathLike[str] | bytes) -> LoadedModel:
    """Read a model.

    Args:
        source: Path of a file, or the file's bytes. External data is looked for beside the file (for bytes: in the
            current directory) and
            mapped, not read.

    Raises:
        NoSuchFile: The file, or a file with external data, is not there.
        InvalidProtobuf: These bytes are not an ONNX model.
        InvalidGraph: It is one, with contents that ONNX does not allow.
    """
    path: Path | None = None
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, what = bytes(source), "the bytes given"
    else:
        path = Path(source)
        what = str(path)
        try:
            data = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as e:
            raise NoSuchFile(f"no model at {path}: {e.strerror}") from e
    proto = _parse(data, what)
    _forget_negative_dimensions(proto.graph)
    base = path.parent if path is not None else Path()
    try:
        model = ir.serde.deserialize_model(proto)
    except Exception as e:
        raise InvalidGraph(f"{what} is an ONNX file whose graph cannot be read: {_innermost(e)}") from e
    _attach_external_data(model, base)
    return LoadedModel(model, ModelMetadata.of(model), path)


def _parse(data: bytes, what: str) -> Any:
    if not data:
        raise InvalidProtobuf(f"{what} is empty, not an ONNX model")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as e:
        hint = _looks_like(data)
        raise InvalidProtobuf(f"{what} is not an ONNX model{hint}") from e
    if not proto.HasField("graph") or not (proto.ir_version or proto.opset_import):
        raise InvalidProtobuf(f"{what} is not an ONNX model{_looks_like(data)}: it has no graph")
    return proto


def _forget_negative_dimensions(graph: Any) -> None:
    """Some exporters write -1 for a dimension that is not known."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")


def _looks_like(data: bytes) -> str:
    for magic, name in (
        (b"version https://git-lfs", "a Git LFS pointer: run `git lfs pull`"),
        (b"PK\x03\x04", "a zip archive (PyTorch's .pt files are)"),
        (b"\x1f\x8b", "gzip data: unpack it first"),
        (b"<", "HTML or XML: the download went wrong"),
    ):
        if data.startswith(magic):
            return f"; it looks like {name}"
    if data[4:8] == b"ORTM":
        return "; it looks like onnxruntime's own format (.ort), which only onnxruntime reads"
    if data[4:8] == b"TFL3":
        return "; it looks like a TensorFlow Lite model"
    return ""


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def _attach_external_data(model: ir.Model, base: Path) -> None:
    """Let external tensors find their files, and see that the files are there and long enough."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if not isinstance(tensor, ir.ExternalTensor):
                continue
            tensor.base_dir = str(base)
            file = base / tensor.location
            if not file.is_file():
                raise NoSuchFile(
                    f"tensor {value.name!r} lies in {file}, which does not exist: put the model's external data "
                    f"beside the model"
                )
            end = (tensor.offset or 0) + (tensor.length or 0)
            if end > file.stat().st_size:
                raise InvalidGraph(
                    f"tensor {value.name!r} reaches to byte {end} of {file}, which has {file.stat().st_size}"
                )

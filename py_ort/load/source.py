"""From a path or bytes to the IR."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from py_ort.boundary import typed_errors
from py_ort.exceptions import InvalidGraph, InvalidProtobuf, NoSuchFile
from py_ort.load.digest import FileStamp, folder_of
from py_ort.load.maps import MapForm, take_maps
from py_ort.load.metadata import ModelMetadata
from py_ort.ops.identity import identify


@dataclass
class LoadedModel:
    """A model in the compiler's IR, and where it came from.

    Attributes:
        model: The model.
        metadata: What it says of itself.
        path: Its file, if it has one.
        external: The files of its external data, by their location in its folder.
        maps: Its inputs and outputs that are maps, by name.
        identified: Whether its constants are known by what they are; see `identify`.
    """

    model: ir.Model
    metadata: ModelMetadata
    path: Path | None
    external: Mapping[str, FileStamp] = field(default_factory=dict)
    maps: Mapping[str, MapForm] = field(default_factory=dict)
    identified: bool = False

    def identify(self, digest: str) -> None:
        """Note for each constant what it is: the hash of the model and its place in it, or its place in which file.

        Constants that are known by this are shared between plans in a page; see
        `py_ort.ops.identity`.

        Args:
            digest: Hash of the model's file.
        """
        files = {name: hashlib.sha256(repr(stamp).encode()).hexdigest() for name, stamp in self.external.items()}
        for number, graph in enumerate(self.model.graphs()):
            for name, value in graph.initializers.items():
                tensor = value.const_value
                if isinstance(tensor, ir.ExternalTensor):
                    place = (files.get(str(tensor.location)), tensor.offset, tensor.length)
                    identify(tensor, f"{place}/{tensor.dtype}")
                elif tensor is not None:
                    identify(tensor, f"{digest}/{number}/{name}")
        self.identified = True

    @property
    def base(self) -> Path:
        """The folder of its external data."""
        return folder_of(self.path)


@typed_errors("reading the model")
def load_model(
    source: str | os.PathLike[str] | bytes, external: Callable[[str, Any], Any] = lambda name, tensor: None
) -> LoadedModel:
    """Read a model.

    Args:
        source: Path of a file, or the file's bytes. External data is looked for beside the file (for bytes: in the
            current directory) and
            mapped, not read.
        external: Given the name of a value and its external tensor, may return another tensor that needs no file.

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
    maps = take_maps(proto)
    try:
        model = ir.serde.deserialize_model(proto)
    except Exception as e:
        raise InvalidGraph(f"{what} is an ONNX file whose graph cannot be read: {_innermost(e)}") from e
    _detach(model)
    files = _attach_external_data(model, folder_of(path), external)
    return LoadedModel(model, ModelMetadata.of(model), path, files, maps)


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


def _detach(model: ir.Model) -> None:
    """Take the constants out of the protobuf message, which copies their bytes each time it is asked for them."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if isinstance(tensor, ir.TensorProtoTensor) and tensor.dtype != ir.DataType.STRING:
                try:
                    contents = tensor.numpy()
                except (ValueError, TypeError, AssertionError, OverflowError) as e:
                    raise InvalidGraph(
                        f"the contents of tensor {value.name!r} do not fit its type and shape: {e}"
                    ) from e
                value.const_value = ir.Tensor(contents, tensor.dtype, name=tensor.name)


def _attach_external_data(model: ir.Model, base: Path, external: Callable[[str, Any], Any]) -> dict[str, FileStamp]:
    """Let external tensors find their files, and see that the files are there and long enough; return the files."""
    files: dict[str, FileStamp] = {}
    for graph in model.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if not isinstance(tensor, ir.ExternalTensor):
                continue
            if (given := external(value.name or "", tensor)) is not None:
                value.const_value = given
                continue
            tensor.base_dir = str(base)
            file = base / tensor.location
            if str(tensor.location) not in files and file.is_file():
                files[str(tensor.location)] = FileStamp.of(file)
            known = files.get(str(tensor.location))
            if known is None:
                raise NoSuchFile(
                    f"tensor {value.name!r} lies in {file}, which does not exist: put the model's external data "
                    f"beside the model"
                )
            end = (tensor.offset or 0) + (tensor.length or 0)
            if end > known.size:
                raise InvalidGraph(f"tensor {value.name!r} reaches to byte {end} of {file}, which has {known.size}")
    return files

"""From a path or bytes to the IR."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from py_ort.boundary import typed_errors
from py_ort.compiler.load.channel_blocks import take_apart_blocks
from py_ort.compiler.load.channels_last import take_apart_channels_last
from py_ort.compiler.load.contents import take_contents
from py_ort.compiler.load.digest import FileStamp
from py_ort.compiler.load.external import ExternalData
from py_ort.compiler.load.long_lists import LongLists
from py_ort.compiler.load.maps import MapForm, take_maps
from py_ort.compiler.load.metadata import ModelMetadata
from py_ort.compiler.load.model_files import DataFolder, open_file, shown
from py_ort.compiler.load.order import put_in_order
from py_ort.compiler.load.ort_format import is_ort_format, read_ort_format
from py_ort.compiler.load.spellings import settle_spellings
from py_ort.compiler.load.truncation import truncated_at
from py_ort.compiler.package.format import MAGIC
from py_ort.exceptions import InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented
from py_ort.ir.content_keys import identify
from py_ort.ir.errors import node_at_fault
from py_ort.ir.external_tensor import ExternalTensor
from py_ort.ir.graph import all_graphs


@dataclass
class LoadedModel:
    """A model in the compiler's IR, and where it came from.

    Attributes:
        model: The model.
        metadata: Its own description: author, version, ….
        folder: The folder of its external data, if it has one.
        external: The files of its external data, by their location in its folder.
        maps: Its inputs and outputs that are maps, by name.
        sparse: Its outputs that are sparse in runs; they are dense in the graph.
        identified: True if its constants have identities; see `identify`.
        checked: True after `py_ort.compiler.compile.check_operators`.
    """

    model: ir.Model
    metadata: ModelMetadata
    folder: DataFolder | None
    external: Mapping[str, FileStamp] = field(default_factory=dict)
    maps: Mapping[str, MapForm] = field(default_factory=dict)
    sparse: Collection[str] = ()
    identified: bool = False
    checked: bool = False

    def identify(self, digest: str) -> None:
        """Give each constant an identity: its place in a model of this hash, or in a file of external data.

        A page shares constants of equal identity between plans; see `py_ort.ir.content_keys`.

        Args:
            digest: Hash of the model's file.
        """
        files = {name: hashlib.sha256(repr(stamp).encode()).hexdigest() for name, stamp in self.external.items()}
        for number, graph in enumerate(all_graphs(self.model.graph)):
            for name, value in graph.initializers.items():
                tensor = value.const_value
                if isinstance(tensor, ExternalTensor):
                    place = (files.get(tensor.location), tensor.offset, tensor.nbytes)
                    identify(tensor, f"{place}/{tensor.dtype}")
                elif tensor is not None:
                    identify(tensor, f"{digest}/{number}/{name}")
        self.identified = True


@typed_errors("reading the model", where=node_at_fault)
def load_model(
    source: str | os.PathLike[str] | bytes,
    *,
    folder: DataFolder | None = None,
    files: Mapping[str, memoryview] | None = None,
    replaced: Collection[str] = (),
) -> LoadedModel:
    """Read a model, ONNX or .ort.

    Args:
        source: Path of a file, or the file's bytes.
        folder: The folder of its external data, which is read when needed; that of its file by default. Bytes have
            none.
        files: Contents of files of external data, by the name that the model has for them: these need not be there.
        replaced: Initializers that get other values: their external data need not be there.

    Raises:
        NoSuchFile: The file, or a file with external data, is not there.
        InvalidProtobuf: These bytes are neither an ONNX model nor one in onnxruntime's own format (.ort).
        InvalidGraph: It is one, with contents that ONNX does not allow.
        NotImplemented: It is in onnxruntime's own format, of a version that is not known here.
    """
    data, what = _contents(source)
    proto = _parse(data, what)
    external = ExternalData(folder or DataFolder.of(source), files)
    external.take_out(proto, replaced)
    long_lists = LongLists()
    long_lists.take_out(proto)
    sparse = settle_spellings(proto)
    maps = take_maps(proto)
    try:
        model = ir.serde.deserialize_model(proto)
    except Exception as e:
        raise InvalidGraph(f"{what} is an ONNX file whose graph cannot be read: {_innermost(e)}") from e
    external.put_in(model)
    long_lists.put_in(model)
    put_in_order(model)
    take_apart_channels_last(model)
    take_contents(model, replaced)
    take_apart_blocks(model)
    return LoadedModel(model, ModelMetadata.of(model), external.folder, external.files, maps, sparse)


def read_whole(source: str | os.PathLike[str] | bytes, folder: DataFolder | None = None) -> bytes:
    """Return a model as bytes, with its external data inside.

    Args:
        source: Path of a file, or the file's bytes.
        folder: The folder of its external data; that of its file by default.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph: As `load_model` does.
        NotImplemented: It would be larger than a protobuf message can be.
    """
    data, what = _contents(source)
    proto, external = _parse(data, what), ExternalData(folder or DataFolder.of(source))
    external.fill(proto)
    if not external.files:
        return data
    try:
        return proto.SerializeToString()
    except Exception as e:
        raise NotImplemented(f"{what} with its external data is more than one file can hold, 2 GiB: {e}") from e


def read_proto(source: str | os.PathLike[str] | bytes) -> onnx.ModelProto:
    """Return a model from its path or bytes, unchanged; external data is not read.

    Raises:
        NoSuchFile, InvalidProtobuf: As `load_model` does.
    """
    return _parse(*_contents(source))


def _contents(source: str | os.PathLike[str] | bytes) -> tuple[bytes, str]:
    """Return a model's bytes, and its name for messages."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), "the bytes given"
    try:
        with open_file(source) as file:
            return file.read(), shown(source)
    except OSError as e:
        raise NoSuchFile(f"no model at {shown(source)}: {e.strerror}") from e


def _parse(data: bytes, what: str) -> onnx.ModelProto:
    if not data:
        raise InvalidProtobuf(f"{what} is empty, not an ONNX model")
    if is_ort_format(data):
        return read_ort_format(data, what)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as e:
        hint = _looks_like(data)
        if not hint and (size := truncated_at(data)) is not None:
            raise InvalidProtobuf(
                f"{what} is truncated: it has {len(data)} bytes of at least {size}. Download or copy it again"
            ) from e
        raise InvalidProtobuf(f"{what} is not an ONNX model{hint}") from e
    if not proto.HasField("graph") or not (proto.ir_version or proto.opset_import):
        raise InvalidProtobuf(f"{what} is not an ONNX model{_looks_like(data)}: it has no graph")
    return proto


def _looks_like(data: bytes) -> str:
    for magic, name in (
        (MAGIC, "a .pyort file, which is compiled already: give the ONNX file that it was made of"),
        (b"version https://git-lfs", "a Git LFS pointer: run `git lfs pull`"),
        (b"PK\x03\x04", "a zip archive (PyTorch's .pt files are)"),
        (b"\x1f\x8b", "gzip data: unpack it first"),
        (b"<", "HTML or XML: the download went wrong"),
    ):
        if data.startswith(magic):
            return f"; it looks like {name}"
    if data[4:8] == b"TFL3":
        return "; it looks like a TensorFlow Lite model"
    return ""


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"

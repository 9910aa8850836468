"""External data: all that a model keeps in files beside it is read here, and only here.

Tensors may be external wherever a model has some: initializers, attributes, in subgraphs, functions, sparse tensors.
They are taken out of the protobuf message before the IR reads it, and the tensors of the IR are put in afterwards.
What the message has meanwhile instead of a file's name is none that could be opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from py_ort.compiler.load.digest import FileStamp
from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY, DataFolder, NoData, OutsideFolder, contents_of, shown
from py_ort.compiler.load.protobuf import is_repeated
from py_ort.exceptions import InvalidGraph, NoSuchFile, NotImplemented
from py_ort.ir.external_tensor import ExternalTensor
from py_ort.wire.parts import Stored, cut, size_of, whole
from py_ort.wire.tensors import NUMPY, byte_size, dtype_name

_NUMBER = re.compile(r"[0-9]{1,19}")
_LOADED = "\0"
_ATTRIBUTE = onnx.AttributeProto.DESCRIPTOR
_WITH_TENSORS = {
    *(onnx.AttributeProto.TENSOR, onnx.AttributeProto.TENSORS, onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS),
    *(onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS),
}


class ExternalData:
    """Reads the external data of one model.

    Args:
        folder: Where it lies; None: the model has no folder.
        in_memory: Contents of files that need not be there, by the name that the model has for them.

    Attributes:
        folder: Where it lies.
        files: The files that were read, by location, as they were then.
    """

    def __init__(self, folder: DataFolder | None, in_memory: Mapping[str, Stored] | None = None) -> None:
        self.files: dict[str, FileStamp] = {}
        self.folder = folder
        self._contents = dict(in_memory or {})
        self._tensors: list[ExternalTensor] = []

    def take_out(self, model: onnx.ModelProto, replaced: Collection[str] = ()) -> None:
        """Read the external data of a model. Bytes of all bool tensors are 0 or 1 afterwards.

        Args:
            model: The model. Its external tensors become references into `tensors`, for `put_in`.
            replaced: Initializers that get other contents: theirs are not needed, and are empty afterwards.

        Raises:
            NoSuchFile: A file is not there, or the model has no folder to look in.
            InvalidGraph: A file lies elsewhere, is too short, or its part does not go with the tensor.
        """
        for initializer in model.graph.initializer:
            if initializer.name in replaced:
                initializer.ClearField("data_location")
                del initializer.external_data[:]
        for found in (each for part in (model.graph, *model.functions) for each in _tensors_of(part)):
            if isinstance(found, onnx.SparseTensorProto):
                self.fill(found)  # the IR knows none: whoever makes it dense finds it whole
            elif found.data_location == onnx.TensorProto.EXTERNAL:
                self._tensors.append(self._read(found))
                del found.external_data[:]
                found.external_data.add(key="location", value=f"{_LOADED}{len(self._tensors) - 1}")
            elif found.data_type == onnx.TensorProto.BOOL:
                _settle_truth(found)

    def put_in(self, model: ir.Model) -> None:
        """Give the IR that was made of a model its external tensors."""
        if not self._tensors:
            return
        self._put_into_graph(model.graph)
        for function in model.functions.values():
            self._put_into_graph(function.graph)
            self._put_into_attributes(function.attributes)

    def fill(self, message: Any) -> None:
        """Put the contents of all external tensors of a message into the message itself; errors as of `take_out`."""
        for found in _tensors_of(message):
            sparse = isinstance(found, onnx.SparseTensorProto)
            for tensor in (found.values, found.indices) if sparse else (found,):
                if tensor.data_location == onnx.TensorProto.EXTERNAL:
                    tensor.raw_data = self._read(tensor).tobytes()
                    tensor.ClearField("data_location")
                    del tensor.external_data[:]

    # --- reading

    def _read(self, tensor: onnx.TensorProto) -> ExternalTensor:
        name = shown(tensor.name)
        entries: dict[str, str] = {}
        for entry in tensor.external_data:
            if entry.key in entries:
                raise InvalidGraph(f"tensor {name} says twice what the {entry.key} of its external data is")
            entries[entry.key] = os.fsdecode(entry.value)  # bytes, if it is not UTF-8: a file may have such a name
        location = entries.get("location", "")
        if not location:
            raise InvalidGraph(f"tensor {name} is external data, and does not say in which file")
        offset, length = (_number(entries.get(key, ""), key, name) for key in ("offset", "length"))
        size = _size(tensor, name)
        if length not in (0, size):  # onnxruntime takes 0 for a length that is not given, too
            shape = f"{dtype_name(tensor.data_type)}{list(tensor.dims)}"
            raise InvalidGraph(f"tensor {name} ({shape}) has {size} bytes, and its external data a length of {length}")
        contents = self._contents_of(location, name)
        if offset + size > size_of(contents):
            raise InvalidGraph(
                f"tensor {name} reaches to byte {offset + size} of {shown(location)}, which has {size_of(contents)}: "
                "the file is another one, or was cut off"
            )
        dtype, part = ir.DataType(tensor.data_type), cut(contents, offset, size)
        return ExternalTensor(
            tensor.name,
            dtype,
            tensor.dims,
            location,
            offset,
            _truth(whole(part)) if dtype == ir.DataType.BOOL else part,
        )

    def _contents_of(self, location: str, name: str) -> Stored:
        known = self._contents.get(location)
        if known is not None:
            return known
        what = f"tensor {name} lies in the file {shown(location)}"
        if self.folder is None:
            raise NoSuchFile(
                f"{what}, and a model given as bytes has no folder: give its path, name a folder by the configuration "
                f"entry {DATA_FOLDER_ENTRY}, or give the file's contents by "
                "SessionOptions.add_external_initializers_from_files_in_memory"
            )
        try:
            with self.folder.open(location) as file:
                self.files[location] = FileStamp.of(file)
                self._contents[location] = contents_of(file, f"the external data {shown(location)}", InvalidGraph)
        except NoData as e:
            raise NoSuchFile(
                f"{what}, and only models without external data are compiled here: save the model as one file, with "
                "onnx.save(onnx.load(FILE), OTHER)"
            ) from e
        except OutsideFolder as e:
            raise InvalidGraph(
                f"External data path validation failed: {what}, which is not in the model's folder {self.folder.path}, "
                "or a link out of it: only files there are read. Put the file beside the model, and its name alone "
                "into the model"
            ) from e
        except OSError as e:
            raise NoSuchFile(
                f"{what}, which cannot be read in {self.folder.path} ({e.strerror}): put the model's external data "
                "beside the model"
            ) from e
        return self._contents[location]

    # --- into the IR

    def _put_into_graph(self, graph: ir.Graph) -> None:
        for value in graph.initializers.values():
            value.const_value = self._loaded(value.const_value)
        for node in graph:
            self._put_into_attributes(node.attributes)

    def _put_into_attributes(self, attributes: Any) -> None:
        for name, item in list(attributes.items()):
            if item.is_ref():
                continue
            if item.type == ir.AttributeType.TENSOR:
                attributes[name] = ir.AttrTensor(name, self._loaded(item.value), doc_string=item.doc_string)
            elif item.type == ir.AttributeType.TENSORS:
                tensors = [self._loaded(tensor) for tensor in item.value]
                attributes[name] = ir.AttrTensors(name, tensors, doc_string=item.doc_string)
            elif item.type == ir.AttributeType.GRAPH:
                self._put_into_graph(item.value)
            elif item.type == ir.AttributeType.GRAPHS:
                for graph in item.value:
                    self._put_into_graph(graph)

    def _loaded(self, tensor: Any) -> Any:
        if not isinstance(tensor, ir.ExternalTensor):
            return tensor
        found = self._tensors[int(str(tensor.location).removeprefix(_LOADED))]
        found.name = tensor.name  # it may have got another one meanwhile
        return found


def _tensors_of(message: Any) -> Iterator[Any]:
    """Yield all tensors and sparse tensors of a message, itself included, at every depth."""
    if isinstance(message, (onnx.TensorProto, onnx.SparseTensorProto)):
        yield message
        return
    for name, repeated in _ways_to_tensors(message.DESCRIPTOR):
        if repeated:
            for item in getattr(message, name):
                if item.DESCRIPTOR is _ATTRIBUTE and item.type not in _WITH_TENSORS:
                    continue  # quickly: most attributes are numbers, and readers go by the declared type
                yield from _tensors_of(item)
        elif message.HasField(name):
            yield from _tensors_of(getattr(message, name))


@cache
def _ways_to_tensors(kind: Any) -> list[tuple[str, bool]]:
    """The fields of a kind of message in which tensors may be, and whether they are repeated."""
    messages = (field for field in kind.fields if field.message_type is not None)
    return [(field.name, is_repeated(field)) for field in messages if _holds_tensors(field.message_type, frozenset())]


def _holds_tensors(kind: Any, seen: frozenset[str]) -> bool:
    if kind.full_name == onnx.TensorProto.DESCRIPTOR.full_name:
        return True
    inner = [field.message_type for field in kind.fields if field.message_type is not None]
    return any(_holds_tensors(each, seen | {kind.full_name}) for each in inner if each.full_name not in seen)


def _truth(contents: Any) -> memoryview:
    """Bytes of bool as they are to be: to onnxruntime any number but 0 is true."""
    numbers = np.frombuffer(contents, np.uint8)
    return memoryview((numbers != 0).view(np.uint8)) if (numbers > 1).any() else memoryview(contents)


def _settle_truth(tensor: onnx.TensorProto) -> None:
    """Do this for a tensor of bool that is in the model itself."""
    if tensor.raw_data:
        tensor.raw_data = bytes(_truth(tensor.raw_data))
    elif any(number not in (0, 1) for number in tensor.int32_data):
        tensor.int32_data[:] = [int(number != 0) for number in tensor.int32_data]


def _number(text: str, key: str, name: str) -> int:
    if text and not _NUMBER.fullmatch(text):
        raise InvalidGraph(f"tensor {name} has external data with the {key} {shown(text)}, which is no number of bytes")
    return int(text or 0)


def _size(tensor: onnx.TensorProto, name: str) -> int:
    """How many bytes a tensor has."""
    if tensor.data_type not in NUMPY or tensor.data_type == onnx.TensorProto.STRING:
        raise NotImplemented(f"tensor {name} is external data of the type {tensor.data_type}: there are only numbers")
    if any(dim < 0 for dim in tensor.dims):
        raise InvalidGraph(f"tensor {name} has the shape {list(tensor.dims)}")
    return byte_size(tensor.data_type, tensor.dims)

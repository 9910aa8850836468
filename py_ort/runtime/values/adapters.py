"""LoRA adapters in onnxruntime's format: a file of values for a model's initializers that are also inputs.

The file is a FlatBuffer, "TORT": a table of format, adapter and model version and of parameters, each a table of name,
dims, ONNX's element type and raw bytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from flatbuffers.number_types import Int32Flags
from flatbuffers.table import Table

from py_ort.boundary import public
from py_ort.compiler.load.model_files import open_file
from py_ort.exceptions import InvalidArgument, NoSuchFile, WrongType
from py_ort.runtime.values.ort_value import OrtValue
from py_ort.signal_handlers import from_handler
from py_ort.wire.tensors import NUMPY

_IDENTIFIER = b"TORT"
_FORMAT = 1
_ALIGNED = 8  # bytes: alignment of a parameter's data
#: Fields of the two tables, in the order of their slots.
_FORMAT_VERSION, _ADAPTER_VERSION, _MODEL_VERSION, _PARAMETERS = range(4)
_NAME, _DIMS, _TYPE, _DATA = range(4)


@public
class AdapterFormat:
    """The contents of an adapter's file, to write or to read."""

    def __init__(self) -> None:
        self._format, self._adapter, self._model = _FORMAT, 0, 0
        self._parameters: dict[str, OrtValue] = {}

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Read a file.

        Raises:
            NoSuchFile: The file cannot be read.
            InvalidArgument: The file is not an adapter.
        """
        try:
            with open_file(file_path) as file:
                data = memoryview(file.read())
        except OSError as e:
            if from_handler(e):
                raise
            raise NoSuchFile(f"the adapter {os.fspath(file_path)} cannot be read: {e.strerror}") from e
        made = AdapterFormat()
        try:
            made._take(data)
        except (struct.error, ValueError, IndexError, TypeError, KeyError, OverflowError) as e:
            if from_handler(e):
                raise
            raise InvalidArgument(f"{os.fspath(file_path)} is no LoRA adapter of onnxruntime's format: {e}") from e
        return made

    def _take(self, data: memoryview) -> None:
        if bytes(data[4:8]) != _IDENTIFIER:
            raise ValueError(f"it begins with {bytes(data[:8])!r}")
        root = Table(data, struct.unpack_from("<I", data)[0])
        versions = (_FORMAT_VERSION, _ADAPTER_VERSION, _MODEL_VERSION)
        self._format, self._adapter, self._model = (_number(root, slot) for slot in versions)
        if self._format != _FORMAT:
            raise ValueError(f"it has format {self._format}, and known is {_FORMAT}")
        self._parameters = dict(_parameters(root))

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Write a file.

        Raises:
            InvalidArgument: A parameter is not a tensor of numbers.
        """
        builder = flatbuffers.Builder(1024)
        parameters = [_write_parameter(builder, name, value) for name, value in self._parameters.items()]
        builder.StartVector(4, len(parameters), 4)
        for offset in reversed(parameters):
            builder.PrependUOffsetTRelative(offset)
        vector = builder.EndVector()
        builder.StartObject(4)
        for slot, number in (
            (_FORMAT_VERSION, _FORMAT),
            (_ADAPTER_VERSION, self._adapter),
            (_MODEL_VERSION, self._model),
        ):
            builder.PrependInt32Slot(slot, number, 0)
        builder.PrependUOffsetTRelativeSlot(_PARAMETERS, vector, 0)
        builder.Finish(builder.EndObject(), file_identifier=_IDENTIFIER)
        Path(file_path).write_bytes(builder.Output())

    def get_format_version(self) -> int:
        """Return the version of the file's format."""
        return self._format

    def get_adapter_version(self) -> int:
        """Return the adapter's own version."""
        return self._adapter

    def set_adapter_version(self, adapter_version: int) -> None:
        """Set the adapter's own version."""
        self._adapter = int(adapter_version)

    def get_model_version(self) -> int:
        """Return the version of the adapter's model."""
        return self._model

    def set_model_version(self, model_version: int) -> None:
        """Set the version of the adapter's model."""
        self._model = int(model_version)

    def get_parameters(self) -> dict[str, OrtValue]:
        """Return the values, by the names of initializers."""
        return dict(self._parameters)

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        """Set the values, by the names of initializers.

        Raises:
            InvalidArgument: A value is not an `OrtValue`.
        """
        for name, value in params.items():
            if not isinstance(value, OrtValue):
                raise WrongType(f"parameter {name!r} is to be an OrtValue, not {type(value).__name__}")
        self._parameters = dict(params)


@public
class LoraAdapter:
    """An adapter for runs: runs with `RunOptions.add_active_adapter` feed its parameters."""

    def __init__(self) -> None:
        self.parameters: dict[str, OrtValue] = {}

    def Load(self, file_path: str | os.PathLike[str]) -> None:  # onnxruntime's name
        """Read a file; see `AdapterFormat.read_adapter`."""
        self.parameters = AdapterFormat.read_adapter(file_path).get_parameters()


def _place(table: Table, slot: int) -> int:
    """Return the offset of a field in its table; 0 if the field is absent."""
    return int(table.Offset(4 + 2 * slot))


def _number(table: Table, slot: int) -> int:
    place = _place(table, slot)
    return int(table.Get(Int32Flags, table.Pos + place)) if place else 0


def _vector(table: Table, slot: int, dtype: str) -> np.ndarray:
    place = _place(table, slot)
    count = table.VectorLen(place) if place else 0
    return np.frombuffer(table.Bytes, dtype, count, table.Vector(place)) if count else np.empty(0, dtype)


def _parameters(root: Table) -> Iterator[tuple[str, OrtValue]]:
    first = root.Vector(_place(root, _PARAMETERS)) if _place(root, _PARAMETERS) else 0
    for index, offset in enumerate(_vector(root, _PARAMETERS, "<u4").tolist()):
        table = Table(root.Bytes, first + 4 * index + offset)
        dims = _vector(table, _DIMS, "<i8").tolist()
        if any(size < 0 for size in dims):
            raise ValueError(f"it has the shape {dims}")
        data = _vector(table, _DATA, "u1").view(NUMPY[_number(table, _TYPE)])
        yield table.String(table.Pos + _place(table, _NAME)).decode(), OrtValue(data.reshape(dims))


def _write_parameter(builder: Any, name: str, value: OrtValue) -> int:
    if value.data_type() == "tensor(string)":
        raise InvalidArgument(f"parameter {name!r} is of type STRING: adapters have tensors of numbers")
    content = value.numpy().tobytes()
    builder.Prep(_ALIGNED, len(content))
    data = builder.CreateByteVector(content)
    text, shape = builder.CreateString(name), builder.CreateNumpyVector(np.array(value.shape(), np.int64))
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(_NAME, text, 0)
    builder.PrependUOffsetTRelativeSlot(_DIMS, shape, 0)
    builder.PrependInt32Slot(_TYPE, value.element_type(), 0)
    builder.PrependUOffsetTRelativeSlot(_DATA, data, 0)
    return int(builder.EndObject())

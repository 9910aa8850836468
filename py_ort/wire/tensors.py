"""Tensors in messages: conversion between numpy arrays and `TensorDesc` with payload."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from py_ort.exceptions import InvalidArgument, NotImplemented, ProtocolError
from py_ort.schema.gen.DType import DType
from py_ort.schema.gen.Location import Location
from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.wire.framing import Buffer, aligned

#: numpy's type of a DType. Types that numpy lacks are from ml_dtypes; strings are arrays of str objects.
NUMPY: dict[int, np.dtype] = {
    getattr(DType, name): np.dtype(getattr(ml_dtypes, scalar) if scalar in dir(ml_dtypes) else scalar)
    for name, scalar in {
        **{n: n for n in ("float16", "float32", "float64", "complex64", "complex128", "bfloat16")},
        **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)},
        "bool_": "bool",
        "string_": "object",
        "float8e4m3fn": "float8_e4m3fn",
        "float8e4m3fnuz": "float8_e4m3fnuz",
        "float8e5m2": "float8_e5m2",
        "float8e5m2fnuz": "float8_e5m2fnuz",
        "float4e2m1": "float4_e2m1fn",
        "float8e8m0": "float8_e8m0fnu",
    }.items()
}
_DTYPES = {dtype: number for number, dtype in NUMPY.items()}
_NAMES = {number: name.rstrip("_") for name, number in vars(DType).items() if name[0] != "_"}

#: Name of a DType in ONNX's "tensor(NAME)".
TYPE_NAMES: dict[int, str] = {
    number: {"float32": "float", "float64": "double"}.get(name, name) for number, name in _NAMES.items() if number
}
#: DType by that name.
TYPE_NUMBERS = {name: number for number, name in TYPE_NAMES.items()}

#: Elements in a byte, for types that ONNX packs (numpy uses one byte for each element).
PACKED = {DType.int4: 2, DType.uint4: 2, DType.float4e2m1: 2, DType.int2: 4, DType.uint2: 4}

_LENGTH = struct.Struct("<I")


def dtype_of(array: np.ndarray) -> int:
    """Return the `DType` of an array's elements; bytes of fixed length ("V4") and numpy's StringDType are strings, too.

    Raises:
        TypeError: ONNX has no such type.
    """
    if array.dtype.kind in "USOT" or (array.dtype.type is np.void and array.dtype.names is None):
        return DType.string_
    # No `except KeyError`: a signal handler may raise one here.
    found = _DTYPES.get(array.dtype.newbyteorder("="))
    if found is None:
        raise TypeError(f"ONNX has no tensors of {array.dtype}")
    return found


def byte_size(dtype: int, dims: Sequence[int]) -> int:
    """Return the size in bytes of a tensor of numbers, as ONNX's raw data."""
    count, per_byte = math.prod(dims), PACKED.get(dtype, 1)
    return -(-count // per_byte) if per_byte > 1 else count * NUMPY[dtype].itemsize


def dtype_name(dtype: int) -> str:
    """Return ONNX's name of a `DType`, in lower case: "float32", "string"."""
    return _NAMES.get(dtype, f"type {dtype}")


@dataclass
class Layout:
    """Payload buffers, one after the other, each at a multiple of 16."""

    buffers: list[Buffer] = field(default_factory=list)
    size: int = 0

    def add(self, data: Buffer) -> int:
        """Append a buffer; return its offset."""
        offset = self.size
        self.buffers.append(data)
        self.size += aligned(len(data))
        return offset

    def padded(self) -> list[Buffer]:
        """Return the buffers with the zeros between them, as in the payload."""
        parts: list[Buffer] = []
        for data in self.buffers:
            parts.append(data)
            if padding := aligned(len(data)) - len(data):
                parts.append(bytes(padding))
        return parts


def pack(name: str, array: np.ndarray, layout: Layout) -> TensorDescT:
    """Describe an array and append its bytes to `layout`; contiguous little-endian memory is not copied."""
    dtype = dtype_of(array)
    data = _to_bytes(array, dtype)
    description = TensorDescT()
    description.name = name
    description.dtype = dtype
    description.dims = list(array.shape)
    description.location = Location.cpu
    description.offset = layout.add(data)
    description.size = len(data)
    return description


def on_gpu(name: str, dtype: int, dims: Sequence[int], gpu_id: int) -> TensorDescT:
    """Describe a tensor in a GPU buffer of the page."""
    description = TensorDescT()
    description.name, description.dtype, description.dims = name, dtype, list(dims)
    description.location, description.gpuId = Location.device, gpu_id
    return description


def from_description(description: Any, payload: memoryview) -> np.ndarray:
    """Return the array of a described tensor: a view of the payload, except for strings and packed types.

    Raises:
        ProtocolError: Type, shape and bytes do not fit together.
    """
    dims = tuple(int(d) for d in (description.dims if description.dims is not None else ()))
    data = payload[description.offset : description.offset + description.size]
    if len(data) != description.size:
        raise ProtocolError(f"tensor {description.name!r} lies outside its message's payload")
    return from_bytes(data, description.dtype, dims, description.name or "")


def from_bytes(data: memoryview, number: int, dims: tuple[int, ...], name: str = "") -> np.ndarray:
    """Return the array of these bytes: a view of them, except for strings and packed types.

    Args:
        data: The elements, as in ONNX's raw data; strings after their lengths.
        number: The elements' `DType`.
        dims: The shape.
        name: Name of the tensor, for messages.

    Raises:
        ProtocolError: Type, shape and bytes do not fit together.
    """
    if len(dims) > _MOST_DIMS:
        raise NotImplemented(f"{name!r} has {len(dims)} dimensions, and numpy's arrays at most {_MOST_DIMS}")
    count = math.prod(dims)
    if number == DType.string_:
        return _strings(data, count, name).reshape(dims)
    if number not in NUMPY:
        raise ProtocolError(f"tensor {name!r} has the unknown type {number}")
    dtype, per_byte, expected = NUMPY[number], PACKED.get(number, 1), byte_size(number, dims)
    if len(data) != expected:
        raise ProtocolError(
            f"tensor {name!r} of {dtype_name(number)}{list(dims)} has {len(data)} bytes, not {expected}"
        )
    if per_byte > 1:
        return _unpacked(np.frombuffer(data, np.uint8), per_byte)[:count].view(dtype).reshape(dims)
    return np.frombuffer(data, dtype).reshape(dims)


_MOST_DIMS = 64 if int(np.__version__.split(".")[0]) > 1 else 32
#: Keeps bytes that are not UTF-8, in both directions.
_ERRORS = "surrogateescape"


def _encoded(item: Any) -> bytes:
    try:
        return item if isinstance(item, bytes) else str(item).encode(errors=_ERRORS)
    except UnicodeEncodeError as e:
        where = f"{e.object[e.start]!r} at {e.start} of a text of {len(e.object)} characters"
        raise InvalidArgument(f"half a surrogate pair, which UTF-8 cannot encode: {where}; remove it") from e


def _to_bytes(array: np.ndarray, dtype: int) -> Buffer:
    if dtype == DType.string_:
        texts = [_encoded(item) for item in array.ravel().tolist()]
        return b"".join(part for text in texts for part in (_LENGTH.pack(len(text)), text))
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if per_byte := PACKED.get(dtype):
        return _packed(raw, per_byte).data
    return raw.data


def _packed(elements: np.ndarray, per_byte: int) -> np.ndarray:
    """Pack the low bits of each byte; the first element gets the lowest bits."""
    bits = 8 // per_byte
    padded = np.zeros(-(-elements.size // per_byte) * per_byte, np.uint8)
    padded[: elements.size] = elements & ((1 << bits) - 1)
    rows = padded.reshape(-1, per_byte)
    return np.bitwise_or.reduce(rows << (np.arange(per_byte, dtype=np.uint8) * bits), axis=1).astype(np.uint8)


def _unpacked(data: np.ndarray, per_byte: int) -> np.ndarray:
    bits = 8 // per_byte
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return ((data[:, None] >> shifts) & ((1 << bits) - 1)).astype(np.uint8).reshape(-1)


def _strings(data: memoryview, count: int, name: str) -> np.ndarray:
    texts, at = np.empty(count, object), 0
    for i in range(count):
        if at + 4 > len(data):
            raise ProtocolError(f"tensor {name!r} ends before its string {i}")
        (length,) = _LENGTH.unpack_from(data, at)
        texts[i] = bytes(data[at + 4 : at + 4 + length]).decode(errors=_ERRORS)
        at += 4 + length
    if at != len(data):
        raise ProtocolError(f"tensor {name!r} has {len(data) - at} bytes after its last string")
    return texts

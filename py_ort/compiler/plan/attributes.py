"""Writes a node's attributes as a separate FlatBuffer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import flatbuffers
import numpy as np
import onnx_ir as ir

from py_ort.ir.long_list import LongList
from py_ort.schema.gen import Attribute, Attributes, TensorValue
from py_ort.schema.gen.AttributeType import AttributeType

#: Bytes of a FlatBuffer's offset.
_OFFSET = 4


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def pack_attributes(items: Iterable[ir.Attr]) -> bytes:
    """Pack attributes, without graphs, which are in `Node.subgraphs`.

    Most nodes of a model have the same few attribute sets, so what is packed is remembered.
    """
    plain = []
    for item in items:
        if item.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            continue
        plain.append(item)
    if not plain:
        return b""
    if any(
        item.type
        in (
            ir.AttributeType.TENSOR,
            ir.AttributeType.SPARSE_TENSOR,
            ir.AttributeType.TENSORS,
            ir.AttributeType.TYPE_PROTO,
        )
        or isinstance(item, LongList)
        for item in plain
    ):
        return _pack([(item.name, item.type, item.value) for item in plain])
    return _pack_plain(
        tuple((item.name, item.type, tuple(v) if isinstance(v := item.value, (list, tuple)) else v) for item in plain)
    )


@lru_cache(4096)
def _pack_plain(items: tuple[tuple[str, ir.AttributeType, Any], ...]) -> bytes:
    return _pack(list(items))


def _pack(items: list[tuple[str, ir.AttributeType, Any]]) -> bytes:
    builder = flatbuffers.Builder(256)
    offsets = [packed for item in items if (packed := _attribute(builder, *item)) is not None]
    Attributes.StartItemsVector(builder, len(offsets))
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    vector = builder.EndVector()
    Attributes.AttributesStart(builder)
    Attributes.AddItems(builder, vector)
    builder.Finish(Attributes.AttributesEnd(builder))
    return bytes(builder.Output())


def _attribute(builder: flatbuffers.Builder, name: str, kind: ir.AttributeType, value: Any) -> int | None:
    """Pack one attribute; None for kinds that only type inference reads."""
    number: int
    add: Any
    content: Any
    if kind == ir.AttributeType.INT:
        number, add, content = AttributeType.i, Attribute.AddI, int(value)
    elif kind == ir.AttributeType.FLOAT:
        number, add, content = AttributeType.f, Attribute.AddF, float(value)
    elif kind == ir.AttributeType.STRING:
        number, add, content = AttributeType.s, Attribute.AddS, builder.CreateString(_text(value))
    elif kind == ir.AttributeType.INTS:
        number, add, content = (
            AttributeType.ints,
            Attribute.AddInts,
            builder.CreateNumpyVector(np.array(value, np.int64)),
        )
    elif kind == ir.AttributeType.FLOATS:
        number, add, content = (
            AttributeType.floats,
            Attribute.AddFloats,
            builder.CreateNumpyVector(np.array(value, np.float32)),
        )
    elif kind == ir.AttributeType.STRINGS:
        number, add, content = (
            AttributeType.strings,
            Attribute.AddStrings,
            string_vector(builder, value),
        )
    elif kind == ir.AttributeType.TENSOR:
        number, add, content = AttributeType.tensor, Attribute.AddTensor, _tensor(builder, value)
    else:
        return None
    name_offset = builder.CreateString(name)
    Attribute.AttributeStart(builder)
    Attribute.AddName(builder, name_offset)
    Attribute.AddType(builder, number)
    add(builder, content)
    return Attribute.AttributeEnd(builder)


def texts_of(tensor: ir.TensorProtocol) -> Sequence[bytes]:
    """Return the elements of a tensor of strings: numpy's byte strings lose the NULs that they end in."""
    if isinstance(tensor, ir.StringTensor):
        return [bytes(text) for text in tensor.string_data()]
    return [text if isinstance(text, bytes) else str(text).encode() for text in tensor.numpy().reshape(-1).tolist()]


def string_vector(builder: flatbuffers.Builder, texts: Sequence[str | bytes]) -> int:
    """Pack a vector of strings."""
    # Each text once, however often it is read.
    places = {text: builder.CreateString(_text(text)) for text in dict.fromkeys(texts)}
    ends = np.fromiter(map(places.__getitem__, texts), np.int64, len(texts))
    # The builder writes from the end of its buffer to the front, and an offset counts from where it stands.
    last = -(-builder.Offset() // _OFFSET) * _OFFSET
    starts = last + _OFFSET * (len(texts) - np.arange(len(texts)))
    return int(builder.CreateNumpyVector((starts - ends).astype(np.uint32)))


def _tensor(builder: flatbuffers.Builder, tensor: ir.TensorProtocol) -> int:
    dims = builder.CreateNumpyVector(np.array(list(tensor.shape), np.int64))
    strings = data = None
    if tensor.dtype == ir.DataType.STRING:
        strings = string_vector(builder, texts_of(tensor))
    else:
        data = builder.CreateByteVector(tensor.tobytes())
    TensorValue.TensorValueStart(builder)
    TensorValue.AddDtype(builder, int(tensor.dtype))
    TensorValue.AddDims(builder, dims)
    if strings is not None:
        TensorValue.AddStrings(builder, strings)
    if data is not None:
        TensorValue.AddData(builder, data)
    return TensorValue.TensorValueEnd(builder)

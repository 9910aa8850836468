"""Did a file end too early? Protobuf only says that it cannot be parsed."""

from __future__ import annotations

import onnx

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}


def truncated_at(data: bytes) -> int | None:
    """Return how long a model's file would have to be at least, when it is shorter than it says itself.

    The fields of a model stand one behind the other, each with its length before it. Bytes that do not begin as a model
    does are not looked at any further.
    """
    known = {field.number for field in onnx.ModelProto.DESCRIPTOR.fields}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag is None:
            return len(data) + 1
        number, kind = tag >> 3, tag & 7
        if number not in known or kind not in (_VARINT, _BYTES, *_FIXED):
            return None
        if kind in _FIXED:
            at += _FIXED[kind]
        else:
            length, at = _varint(data, at)
            if length is None:
                return len(data) + 1
            at += length if kind == _BYTES else 0
    return at if at > len(data) else None


def _varint(data: bytes, at: int) -> tuple[int | None, int]:
    """Read a number of seven bits a byte; None where the file ends within it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return None, at
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            break
    return value, at

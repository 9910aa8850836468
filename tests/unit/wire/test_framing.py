"""Frames: joined frames are the original message, however it was cut; invalid ones are refused."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from py_ort.exceptions import ProtocolError
from py_ort.wire.framing import FRAME_SIZE, SMALL, Assembler, aligned, frames


def joined(header: bytes, payload: list[bytes]) -> tuple[bytes, bytes, int]:
    assembler, count = Assembler(), 0
    result = None
    for frame in frames(header, payload):
        assert result is None, "a frame came after the message's end"
        assert len(frame) <= FRAME_SIZE
        result = assembler.receive(frame)
        count += 1
    assert result is not None
    return bytes(result[0]), bytes(result[1]), count


@given(header=st.binary(min_size=8, max_size=100), payload=st.lists(st.binary(max_size=100), max_size=5))
def test_round_trip(header, payload):
    got_header, got_payload, count = joined(header, payload)
    assert got_header == header
    assert got_payload == b"".join(part + bytes(aligned(len(part)) - len(part)) for part in payload)
    assert count == 1


@pytest.mark.parametrize("size", [SMALL - 1, SMALL, FRAME_SIZE - 1, FRAME_SIZE, FRAME_SIZE + 1, 3 * FRAME_SIZE + 5])
def test_round_trip_large(size):
    part = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    header, payload, count = joined(b"12345678", [b"first", part, b"last", part])
    assert payload.startswith(b"first" + bytes(11) + part) and header == b"12345678"
    assert count >= 2 * size // FRAME_SIZE


def test_large_parts_are_not_copied():
    part = memoryview(bytearray(2 * FRAME_SIZE))
    assert sum(isinstance(frame, memoryview) and frame.obj is part.obj for frame in frames(b"12345678", [part])) == 2


def test_many_small_parts():
    payload = [b"y" * (SMALL - 16)] * 50
    assert joined(b"12345678", payload)[1] == b"".join(payload)


def test_payload_is_aligned_and_writable():
    assembler = Assembler()
    (frame,) = frames(b"123456789", [b"abc"])
    _, payload = assembler.receive(frame)
    payload[0] = 1
    assert len(payload) == 16


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack("<QII", 8, 8, 0),
        struct.pack("<QII", 1 << 40, 8, 0),
        struct.pack("<QII", 32, 100, 0),
        struct.pack("<QII", 32, 8, 1),
        struct.pack("<QII", 32, 8, 0) + bytes(17),
    ],
)
def test_refused(frame):
    with pytest.raises(ProtocolError):
        Assembler().receive(frame)


def _message(assembler: Assembler, fill: int, size: int) -> memoryview:
    found = None
    for frame in frames(b"a header", [memoryview(bytes([fill]) * size)]):
        found = assembler.receive(frame)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("held", ["payload", "array", "part", "reshaped"])
def test_memory_that_is_seen_is_not_used_again(held: str) -> None:
    """As long as anything refers to a message's memory, its bytes stay; afterwards the next message uses the memory."""
    assembler, size = Assembler(), 3 * FRAME_SIZE
    views = {
        "payload": lambda payload: payload,
        "array": lambda payload: np.frombuffer(payload, np.float32),
        "part": lambda payload: payload[64:128],
        "reshaped": lambda payload: np.frombuffer(payload, np.uint8)[16:32].reshape(4, 4).T,
    }
    first = _message(assembler, 1, size)
    view = views[held](first)
    del first
    for fill in (2, 3, 4, 5):
        _message(assembler, fill, size)
        assert set(bytes(view)) == {1}
    del view
    addresses = {np.frombuffer(_message(assembler, 6, size), np.uint8).ctypes.data for _ in range(4)}
    assert len(addresses) == 1

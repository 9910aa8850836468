"""The server's frames of data on a websocket; the websockets package handles all other frames.

The package's parser takes longer for a small answer than all other work on the answer, and copies large frames several
times.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from websockets import frames

Buffer: TypeAlias = bytes | bytearray | memoryview

#: The package's function that removes a mask; in C if the package was built so.
_unmasked: Callable[[Any, bytes], bytes] = vars(frames)["apply_mask"]

#: First bytes of frames: of data, for all positions in a message; of pings and pongs.
_BINARY, _DATA, _PINGS = 0x82, (0x82, 0x02, 0x80, 0x00), (0x89, 0x8A)
#: Second byte of a frame: the bit for a mask, and the length, or the number of bytes that contain the length.
_HAS_MASK, _SHORT, _TWO_BYTES, _EIGHT_BYTES = 0x80, 125, 126, 127
_TINY_HEAD, _SMALL_HEAD, _LARGE_HEAD = struct.Struct("!BB"), struct.Struct("!BBH"), struct.Struct("!BBQ")
_MASK = 4

#: Bytes of a large frame written at a time: the transport copies all bytes that the socket does not accept at once.
_CHUNK = 1 << 17


def framed(data: Buffer) -> Iterator[Buffer]:
    """Yield a frame of data in parts of at most about 128 KiB."""
    size, view = len(data), memoryview(data)
    if size <= _SHORT:
        head = _TINY_HEAD.pack(_BINARY, size)
    elif size < 1 << 16:
        head = _SMALL_HEAD.pack(_BINARY, _TWO_BYTES, size)
    else:
        head = _LARGE_HEAD.pack(_BINARY, _EIGHT_BYTES, size)
    yield b"".join((head, view[:_CHUNK]))
    for at in range(_CHUNK, size, _CHUNK):
        yield view[at : at + _CHUNK]


class FrameReader:
    """Reads a client's bytes after its handshake.

    Args:
        limit: Largest size of a frame of data in bytes.
        data: Called with parts of the data, in order, as soon as they arrive.
        others: Called with bytes for the package: pings, and everything from the first frame on that is neither a ping
            nor valid data.
    """

    def __init__(self, limit: int, data: Callable[[memoryview], None], others: Callable[[bytes], None]) -> None:
        self._limit, self._data, self._others = limit, data, others
        self._begun = b""  # an incomplete head or ping
        self._left, self._mask = 0, b""  # of the current frame of data
        self._over = False

    def read(self, data: bytes) -> None:
        """Read the next bytes."""
        if self._begun:
            data, self._begun = self._begun + data, b""
        at, end = 0, len(data)
        while at < end:
            if self._left:
                at += self._read_data(memoryview(data)[at : at + self._left])
                continue
            if self._over or (head := _head(data, at)) is None:
                break
            start, size = head
            if data[at] in _DATA and size <= self._limit:
                self._left, self._mask = size, data[start - _MASK : start]
            elif data[at] in _PINGS and size <= _SHORT:
                if start + size > end:
                    break
                start += size
                self._others(data[at:start])
            else:
                self._over = True
                break
            at = start
        if self._over:
            self._others(data[at:])
        else:
            self._begun = data[at:]

    def _read_data(self, part: memoryview) -> int:
        size = len(part)
        self._left -= size
        mask, turn = self._mask, size % _MASK
        self._mask = mask[turn:] + mask[:turn]
        self._data(memoryview(_unmasked(part, mask)))
        return size


def _head(data: bytes, at: int) -> tuple[int, int] | None:
    """Return the end of the head of the frame that begins at `at`, and the size of the frame's content.

    The result is None if the head is incomplete. A frame without a mask, which no client may send, has a forbidden
    size.
    """
    if len(data) < at + 2:
        return None
    said = data[at + 1]
    if said < _HAS_MASK:
        return at, 1 << 64
    said -= _HAS_MASK
    form = {_TWO_BYTES: _SMALL_HEAD, _EIGHT_BYTES: _LARGE_HEAD}.get(said, _TINY_HEAD)
    start = at + form.size + _MASK
    if len(data) < start:
        return None
    return start, said if said <= _SHORT else form.unpack_from(data, at)[2]

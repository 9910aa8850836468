"""Messages cut into websocket frames, and frames joined to messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from py_ort.exceptions import ProtocolError

#: Largest size of a frame. Frames of 1 MiB are the fastest in all browsers.
FRAME_SIZE = 1 << 20
#: Payload parts start at multiples of this.
ALIGNMENT = 16
#: Parts below this size are copied together instead of becoming frames of their own.
SMALL = 1 << 16
#: Limits of the memory kept for later messages: pieces, and bytes in total.
_KEPT, _KEPT_BYTES = 3, 256 << 20

_PREFIX = struct.Struct("<QII")  # total size, header size, _HERE or _ELSEWHERE
#: Values for the payload's place: in the message, or at a URL that the message contains.
_HERE, _ELSEWHERE = 0, 1

Buffer = bytes | bytearray | memoryview


def aligned(size: int) -> int:
    """Return `size` rounded up to the payload's alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def frames(header: Buffer, payload: Sequence[Buffer] = (), url: str = "") -> Iterator[Buffer]:
    """Yield the frames of one message.

    Args:
        header: The FlatBuffers `Message`.
        payload: Buffers of bytes. Each starts at a multiple of 16 in the payload; large buffers are not copied.
        url: URL from which the page fetches the payload instead.
    """
    if url:
        payload = [url.encode()]
    start = _PREFIX.size + len(header)
    total = aligned(start) + sum(aligned(len(part)) for part in payload)
    small = [_PREFIX.pack(total, len(header), _ELSEWHERE if url else _HERE), header, bytes(aligned(start) - start)]
    gathered = sum(len(part) for part in small)
    for part in payload:
        padding = bytes(aligned(len(part)) - len(part))
        if len(part) < SMALL:
            small += [part, padding]
            gathered += len(part) + len(padding)
            if gathered >= FRAME_SIZE - SMALL:
                yield from _slices(b"".join(small))
                small, gathered = [], 0
            continue
        if small:
            yield from _slices(b"".join(small))
        yield from _slices(memoryview(part))
        small, gathered = [padding], len(padding)
    if gathered:
        yield from _slices(b"".join(small))


def _slices(data: Buffer) -> Iterator[Buffer]:
    if len(data) <= FRAME_SIZE:
        yield data
        return
    view = memoryview(data)
    for at in range(0, len(view), FRAME_SIZE):
        yield view[at : at + FRAME_SIZE]


class _Memory:
    """Memory for messages. Large pieces are used again once no view of them exists.

    New memory causes page faults, which take longer than all copying.
    """

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def take(self, size: int) -> np.ndarray:
        """Return `size` bytes, with any content."""
        if size < FRAME_SIZE:
            return np.empty(size, np.uint8)
        for piece in self._kept:
            if size <= len(piece) <= 2 * size and not _viewed(piece):
                return np.frombuffer(piece, np.uint8, size)
        piece = bytearray(size + 1)  # room for `_viewed`
        piece.pop()
        self._kept = [piece, *self._kept[: _KEPT - 1]]
        while sum(map(len, self._kept)) > _KEPT_BYTES:
            self._kept.pop()
        return np.frombuffer(piece, np.uint8)


def _viewed(piece: bytearray) -> bool:
    """Return True if a view of these bytes exists, direct or not: only then do they refuse to be resized."""
    try:
        piece.append(0)
    except BufferError:
        return True
    piece.pop()
    return False


class Assembler:
    """Joins frames to messages; pass each frame, or its parts, to `receive`.

    Args:
        limit: Largest size of a message in bytes; larger messages are refused.
    """

    def __init__(self, limit: int = 1 << 33) -> None:
        self._limit = limit
        self._message: np.ndarray | None = None
        self._filled = 0
        self._header_size = 0
        self._memory = _Memory()
        self._prefix = b""  # start of a message, as long as the prefix is incomplete

    @property
    def partial(self) -> bool:
        """True if a message has begun and not ended."""
        return self._message is not None or bool(self._prefix)

    def receive(self, part: Buffer) -> tuple[memoryview, memoryview] | None:
        """Read the next bytes; return (header, payload) if they complete a message.

        The payload is writable and 16-byte aligned, and no other message uses its memory.

        Raises:
            ProtocolError: The bytes do not fit the message.
        """
        if self._message is None:
            if self._prefix or len(part) < _PREFIX.size:
                part, self._prefix = self._prefix + part, b""
            if len(part) < _PREFIX.size:
                self._prefix = bytes(part)
                return None
            self._begin(part)
        message = self._message
        assert message is not None
        end = self._filled + len(part)
        if end > message.nbytes:
            raise ProtocolError(f"{len(part)} bytes came, which end {end - message.nbytes} bytes beyond their message")
        message[self._filled : end] = np.frombuffer(part, np.uint8)
        self._filled = end
        if end < message.nbytes:
            return None
        self._message = None
        whole = memoryview(message.data)
        start = _PREFIX.size + self._header_size
        return whole[_PREFIX.size : start], whole[aligned(start) :]

    def _begin(self, part: Buffer) -> None:
        total, self._header_size, zero = _PREFIX.unpack_from(part)
        if zero or self._header_size < 8 or not aligned(_PREFIX.size + self._header_size) <= total <= self._limit:
            raise ProtocolError(f"a message of {total} bytes with a header of {self._header_size} is not possible")
        self._message, self._filled = self._memory.take(total), 0

"""The server's end of a websocket, as an asyncio protocol: binary messages only, no extensions (RFC 6455).

What makes it quick: sending does not wait for anything as long as the socket takes the bytes, and what comes in is read
into one buffer and unmasked in place.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import TypeAlias

import numpy as np

Buffer: TypeAlias = bytes | bytearray | memoryview

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_HEAD_LIMIT = 1 << 14
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
#: Room for frames of 1 MiB and their headers.
_ROOM = (1 << 20) + (1 << 16)
_CHUNK = 1 << 17


class WebSocket(asyncio.BufferedProtocol):
    """One connection. What comes in is told by calls, in the loop's thread.

    Args:
        admit: Given the request's target and headers; returns why it is refused, or None.
        limit: Longer frames end the connection.

    Attributes:
        on_open: Called when the handshake is done.
        on_bytes: Called with parts of binary messages, in order; the memory is reused afterwards.
        on_close: Called once when the connection is gone.
        sent, received: Bytes so far.
    """

    def __init__(self, admit: Callable[[str, Mapping[str, str]], HTTPStatus | None], limit: int) -> None:
        self.target = ""
        self.on_open: Callable[[], None] = lambda: None
        self.on_bytes: Callable[[memoryview], None] = lambda part: None
        self.on_close: Callable[[], None] = lambda: None
        self._admit, self._limit = admit, limit
        self._transport: asyncio.Transport | None = None
        self._memory = np.empty(_ROOM, np.uint8)
        self._view = memoryview(self._memory.data)
        self._start = self._end = 0  # of what was read and not yet taken
        self._open = False
        self._frame: tuple[int, int, np.ndarray] | None = None  # opcode, bytes missing, mask
        self._queue: deque[Iterator[Buffer]] = deque()
        self._paused = False
        self._closed = asyncio.Event()
        self.sent = self.received = 0

    # --- out

    def send(self, frames: Iterable[Buffer]) -> None:
        """Send messages, after those before them. Never waits, never fails: `on_close` tells of a loss."""
        self._queue.append(_wire(frames))
        self._write()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye and close."""
        if self._transport is not None and not self._transport.is_closing():
            if self._open:
                self._transport.write(_header(_CLOSE, 2 + len(reason.encode())) + code.to_bytes(2, "big"))
                self._transport.write(reason.encode())
            self._transport.close()
        self._queue.clear()

    async def wait_closed(self) -> None:
        """Wait until the connection is gone."""
        await self._closed.wait()

    def _write(self) -> None:
        transport = self._transport
        assert transport is not None
        while self._queue and not self._paused and not transport.is_closing():
            part = next(self._queue[0], None)
            if part is None:
                self._queue.popleft()
            else:
                transport.write(part)
                self.sent += len(part)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._write()

    # --- in

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._queue.clear()
        self._closed.set()
        self.on_close()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == _ROOM:  # what is left is the beginning of a header: few bytes
            left = bytes(self._view[self._start : self._end])
            self._view[: len(left)] = left
            self._start, self._end = 0, len(left)
        return self._view[self._end :]

    def buffer_updated(self, size: int) -> None:
        self._end += size
        self.received += size
        while self._take():
            pass

    def _take(self) -> bool:
        """Take the next thing out of the buffer; return whether there may be more."""
        if self._transport is None or self._transport.is_closing():
            self._start = self._end
            return False
        if not self._open:
            return self._shake_hands()
        if self._frame is None and not self._begin_frame():
            return False
        assert self._frame is not None
        opcode, missing, mask = self._frame
        size = min(missing, self._end - self._start)
        if opcode >= _CLOSE and size < missing:
            return False  # control frames are short: wait for all of it
        part = self._view[self._start : self._start + size]
        _unmask(self._memory[self._start : self._start + size], mask)
        self._start += size
        if missing > size:
            self._frame = opcode, missing - size, np.roll(mask, -(size % 4))
        else:
            self._frame = None
        if opcode in (_BINARY, _CONTINUATION):
            if size:
                self.on_bytes(part)
        elif opcode == _PING:
            self._transport.write(_header(_PONG, size) + part)
        elif opcode == _CLOSE:
            self.close()
        return self._start < self._end or (opcode < _CLOSE and missing == 0)

    def _begin_frame(self) -> bool:
        data = self._view[self._start : self._end]
        if len(data) < 2:
            return False
        opcode, short = data[0] & 0x0F, data[1] & 0x7F
        extended = {126: 2, 127: 8}.get(short, 0)
        if len(data) < 2 + extended + 4:
            return False
        size = int.from_bytes(data[2 : 2 + extended], "big") if extended else short
        if data[0] & 0x70 or not data[1] & 0x80 or opcode not in (_CONTINUATION, _BINARY, _CLOSE, _PING, _PONG):
            self.close(1003 if opcode == _TEXT else 1002, "binary messages only")
            return False
        if size > self._limit or (opcode >= _CLOSE and size > 125):
            self.close(1009, f"a frame of {size} bytes")
            return False
        self._start += 2 + extended
        mask = self._memory[self._start : self._start + 4].copy()
        self._start += 4
        self._frame = opcode, size, mask
        return True

    def _shake_hands(self) -> bool:
        data = bytes(self._view[self._start : self._end])
        head, found, _ = data.partition(b"\r\n\r\n")
        if not found:
            if len(data) > _HEAD_LIMIT:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return False
        self._start += len(head) + 4
        request, *lines = head.decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        words = request.split(" ")
        key = headers.get("sec-websocket-key", "")
        if len(words) != 3 or words[0] != "GET" or headers.get("upgrade", "").lower() != "websocket" or not key:
            self._refuse(HTTPStatus.UPGRADE_REQUIRED)
            return False
        if refusal := self._admit(words[1], headers):
            self._refuse(refusal)
            return False
        self.target = words[1]
        accept = base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()
        assert self._transport is not None
        self._transport.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        self._open = True
        self.on_open()
        return True

    def _refuse(self, status: HTTPStatus) -> None:
        assert self._transport is not None
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode())
        self._transport.close()


def _wire(frames: Iterable[Buffer]) -> Iterator[Buffer]:
    """Yield what goes over the socket. Large frames in parts: what the socket does not take at once is copied."""
    for frame in frames:
        header = _header(_BINARY, len(frame))
        if len(frame) <= _CHUNK:
            yield b"".join((header, frame))
            continue
        yield header
        view = memoryview(frame)
        for at in range(0, len(frame), _CHUNK):
            yield view[at : at + _CHUNK]


def _header(opcode: int, size: int) -> bytes:
    first = bytes((0x80 | opcode,))
    if size < 126:
        return first + bytes((size,))
    if size < 1 << 16:
        return first + bytes((126,)) + size.to_bytes(2, "big")
    return first + bytes((127,)) + size.to_bytes(8, "big")


def _unmask(data: np.ndarray, mask: np.ndarray) -> None:
    """Undo a client's mask in place, four bytes at a time where they are aligned."""
    lead = min(-data.ctypes.data % 4, len(data))
    if lead:
        data[:lead] ^= mask[:lead]
        data, mask = data[lead:], np.roll(mask, -lead)
    words = len(data) // 4
    data[: words * 4].view(np.uint32)[...] ^= mask.view(np.uint32)[0]
    rest = data[words * 4 :]
    rest ^= mask[: len(rest)]

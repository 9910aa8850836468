"""The server's end of a websocket: the websockets package's protocol on our own asyncio transport.

The package's own server would be slower. Here sending waits for nothing as long as the socket accepts the bytes, and
received data is passed on by a call, without a task or a queue. The package handles the handshake and all frames but
those of data, which are written and read here (`data_frames.py`).

Any thread may send a small message at once, because waking the loop's thread takes as long as the sending.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Protocol

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from py_ort.browser.data_frames import Buffer, FrameReader, framed
from py_ort.signal_handlers import from_handler


class Letter(Protocol):
    """A message to send; `sent` receives the number of bytes that the socket accepted at once."""

    sent: list[int]


class WebSocket(asyncio.Protocol):
    """One connection. It reports data and events by calls. All methods run in the loop's thread, except `send_at_once`.

    Args:
        admit: Returns the status of a refusal for a request's target and headers, or None.
        limit: Largest size of a frame in bytes; a larger frame ends the connection.

    Attributes:
        on_connect: Called for a new connection, before its handshake.
        on_open: Called after the handshake.
        on_bytes: Called with parts of binary messages, in order.
        on_close: Called once when the connection is gone.
        sent, received: Bytes so far.
        lock: Lock of all writing; callers may hold it to send several messages in order.
    """

    def __init__(self, admit: Callable[[str, Mapping[str, str]], HTTPStatus | None], limit: int) -> None:
        self.target = ""
        self.on_connect: Callable[[], None] = lambda: None
        self.on_open: Callable[[], None] = lambda: None
        self.on_bytes: Callable[[memoryview], None] = lambda part: None
        self.on_close: Callable[[], None] = lambda: None
        self._admit = admit
        # Compression is an extension, and none is offered.
        self._protocol = ServerProtocol(max_size=limit)
        self._reader = FrameReader(limit, lambda part: self.on_bytes(part), self._read_others)
        self._transport: asyncio.Transport | None = None
        self._queue: deque[Iterator[Buffer]] = deque()
        self._paused = False
        self._closed = asyncio.Event()
        self.sent = self.received = 0
        self.lock = threading.RLock()
        self._loop = asyncio.get_running_loop()
        self._direct: socket.socket | None = None
        self._rest = b""  # the unsent end of a message sent at once

    # --- out

    def send(self, frames: Iterable[Buffer]) -> None:
        """Send messages in order. Never waits and never fails: a loss calls `on_close`."""
        with self.lock:
            self._queue.append(iter(frames))
            self._write()

    @property
    def idle(self) -> bool:
        """True if it is open and nothing waits to be written; stays true as long as the lock is held."""
        return self._direct is not None and not (self._queue or self._paused or self._rest)

    def send_at_once(self, frames: Iterable[Buffer], letter: Letter) -> bool:
        """Send a small message from any thread that holds the lock, while this is `idle`.

        Args:
            frames: The frames of the message.
            letter: The message; its `sent` is set even if a signal handler (Ctrl-C) raises instead of a result.

        Returns:
            True if it was sent. Otherwise only the loop can find the reason.
        """
        assert self._direct is not None
        data = b"".join(part for frame in frames for part in framed(frame))
        try:
            # Sending and noting the size are one step to Python: no signal handler runs between them.
            letter.sent.extend(map(self._direct.send, (data,)))
        except OSError as e:
            if from_handler(e):
                raise
            return False
        finally:
            for size in letter.sent:
                self.sent += size
                if size < len(data):
                    self._rest = data[size:]
                    self._loop.call_soon_threadsafe(self._write)
        return True

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Send a close frame and close."""
        self._queue.clear()
        if self._transport is not None and not self._transport.is_closing():
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(code, reason)
                self._flush()
            self._transport.close()

    async def wait_closed(self) -> None:
        """Wait until the connection is gone."""
        await self._closed.wait()

    def _write(self) -> None:
        with self.lock:
            if self._rest:
                self._put(b"")
            while self._queue and not self._paused and self._protocol.state is State.OPEN:
                frame = next(self._queue[0], None)
                if frame is None:
                    self._queue.popleft()
                else:
                    for part in framed(frame):
                        self._put(part)

    def _put(self, part: Buffer) -> None:
        """Write this after the rest of an earlier message."""
        assert self._transport is not None
        if self._rest:
            part, self._rest = self._rest + part, b""
        if not self._transport.is_closing():
            self._transport.write(part)
            self.sent += len(part)

    def _flush(self) -> None:
        """Write the protocol's own frames; an empty part means that it will never write again."""
        assert self._transport is not None
        with self.lock:
            for part in self._protocol.data_to_send():
                if not part:
                    self._transport.close()
                self._put(part)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        with self.lock:
            self._paused = False
            self._write()

    # --- in

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(0)  # so `_paused` is true while bytes are left to write
        self.on_connect()

    def connection_lost(self, error: Exception | None) -> None:
        with self.lock:
            self._queue.clear()
            if self._direct is not None:
                self._direct.close()
            self._direct = None
        self._protocol.receive_eof()
        self._closed.set()
        self.on_close()

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self.target:
            self._reader.read(data)
        else:
            self._read_others(data)

    def _read_others(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._answer(event)
            elif isinstance(event, Frame) and event.opcode in (Opcode.BINARY, Opcode.CONT):
                if event.data:
                    self.on_bytes(memoryview(event.data))
            elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                self.close(1003, "binary messages only")
        self._flush()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._flush()

    def _answer(self, request: Request) -> None:
        refusal = self._admit(request.path, {name.lower(): value for name, value in request.headers.raw_items()})
        protocol = self._protocol
        response = protocol.reject(refusal, "") if refusal else protocol.accept(request)
        protocol.send_response(response)
        self._flush()
        if protocol.state is State.OPEN:
            assert self._transport is not None
            self._direct = self._transport.get_extra_info("socket").dup()
            self.target = request.path
            self.on_open()

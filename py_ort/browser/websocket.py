"""The server's end of a websocket: the websockets package's protocol on an asyncio transport of our own.

What the package's own server would add costs time here: sending does not wait for anything as long as the socket takes
the bytes, and what comes in is handed on by a call, without a task or a queue between. The package has the handshake
and whatever is not data; frames of that are written and read here (`data_frames.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from py_ort.browser.data_frames import Buffer, FrameReader, framed


class WebSocket(asyncio.Protocol):
    """One connection. What comes in is told by calls, in the loop's thread.

    Args:
        admit: Given the request's target and headers; returns why it is refused, or None.
        limit: Longer frames end the connection.

    Attributes:
        on_connect: Called when the connection is there, before its handshake.
        on_open: Called when the handshake is done.
        on_bytes: Called with parts of binary messages, in order.
        on_close: Called once when the connection is gone.
        sent, received: Bytes so far.
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

    # --- out

    def send(self, frames: Iterable[Buffer]) -> None:
        """Send messages, after those before them. Never waits, never fails: `on_close` tells of a loss."""
        self._queue.append(iter(frames))
        self._write()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye and close."""
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
        while self._queue and not self._paused and self._protocol.state is State.OPEN:
            frame = next(self._queue[0], None)
            if frame is None:
                self._queue.popleft()
            else:
                for part in framed(frame):
                    self._put(part)

    def _put(self, part: Buffer) -> None:
        assert self._transport is not None
        if not self._transport.is_closing():
            self._transport.write(part)
            self.sent += len(part)

    def _flush(self) -> None:
        """Write what the protocol has to say; an empty part means that it has nothing more to say, ever."""
        assert self._transport is not None
        for part in self._protocol.data_to_send():
            if not part:
                self._transport.close()
            self._put(part)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._write()

    # --- in

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.on_connect()

    def connection_lost(self, error: Exception | None) -> None:
        self._queue.clear()
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
            self.target = request.path
            self.on_open()

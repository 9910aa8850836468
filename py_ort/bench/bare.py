"""A worker in the session's page without py_ort's protocol: what the browser does by itself, at the same moment."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py_ort.browser.loop import loop_thread
from py_ort.browser.pool import Lease
from py_ort.browser.websocket import WebSocket
from py_ort.exceptions import PyOrtError, Timeout
from py_ort.schema.gen.OpenWorker import OpenWorkerT
from py_ort.wire.framing import FRAME_SIZE

_SCRIPT = "bare_bench.js"
#: Characters of answers that are words, not bytes that were asked for.
_LONGEST = 1000


class Bare:
    """A worker of the session's page with a bare websocket."""

    def __init__(self) -> None:
        self._socket: WebSocket | None = None
        self._server: asyncio.Server | None = None
        self._wanted = 0
        self._text = b""
        self._answered = asyncio.Event()

    async def open(self, lease: Lease, timeout: float) -> None:
        """Start it."""
        token, opened = secrets.token_urlsafe(16), asyncio.Event()

        def accept() -> WebSocket:
            admit: Any = lambda target, headers: None if token in target else 403  # noqa: E731
            socket = WebSocket(admit, FRAME_SIZE)
            socket.on_open, socket.on_bytes, self._socket = opened.set, self._receive, socket
            return socket

        self._server = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
        body = OpenWorkerT()
        body.script, body.token = _SCRIPT, token
        body.port = self._server.sockets[0].getsockname()[1]
        await lease.host.request(body, timeout=timeout)
        try:
            await asyncio.wait_for(opened.wait(), timeout)
        except TimeoutError:
            raise Timeout(f"{_SCRIPT} did not connect within {timeout:g} s") from None

    def _receive(self, part: memoryview) -> None:
        self._text = bytes(part[:_LONGEST])
        self._wanted -= len(part)
        if self._wanted <= 0:
            self._answered.set()

    async def ask(self, command: str, answer_size: int = 0) -> float:
        """Send a command; return the milliseconds until it was answered."""
        assert self._socket is not None
        self._answered.clear()
        self._wanted = answer_size
        began = time.perf_counter()
        self._socket.send([command.encode()])
        await self._answered.wait()
        if self._text.startswith(b"error"):
            raise PyOrtError(self._text.decode())
        return (time.perf_counter() - began) * 1000

    async def told(self, command: str, timeout: float = 120) -> str:
        """Send a command; return what was answered.

        Raises:
            Timeout: Nothing was.
        """
        try:
            await asyncio.wait_for(self.ask(command), timeout)
        except TimeoutError:
            raise Timeout(f"{_SCRIPT} did not answer {command!r} within {timeout:g} s") from None
        return self._text.decode()

    async def close(self) -> None:
        """End it."""
        if self._socket:
            self._socket.close()
        if self._server:
            self._server.close()


@contextmanager
def bare(lease: Lease) -> Iterator[Bare]:
    """Start one in a lease's page, and end it.

    Raises:
        Timeout: It does not connect: the browser may be on another machine, whose loopback is not ours.
    """

    async def make() -> Bare:
        made = Bare()
        await made.open(lease, 30)
        return made

    made = loop_thread().call(make())
    try:
        yield made
    finally:
        loop_thread().call(made.close())

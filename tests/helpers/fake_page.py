"""A peer of the bridge that replaces the browser's page and its worker, and sends what a test requires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from py_ort.browser.launchers.launcher import Launcher
from py_ort.schema.gen.Ack import AckT
from py_ort.schema.gen.DeviceOpened import DeviceOpenedT
from py_ort.schema.gen.Hello import HelloT
from py_ort.schema.gen.JsepBuffer import JsepBufferT
from py_ort.schema.gen.JsepBytes import JsepBytesT
from py_ort.schema.gen.JsepKernel import JsepKernelT
from py_ort.schema.gen.Pong import PongT
from py_ort.schema.gen.ProtocolVersion import ProtocolVersion
from py_ort.schema.gen.RunResult import RunResultT
from py_ort.schema.gen.SessionCreated import SessionCreatedT
from py_ort.schema.gen.Stats import StatsT
from py_ort.wire import Assembler, Layout, Received, decode, encode, frames, pack
from py_ort.wire.tensors import on_gpu

#: For a message that answers a request: receives the request, and the answer's body and payload; returns frames to
#: send.
Garble = Callable[[Received, Any, list[bytes]], Iterable[bytes]]

_MEMORY = {"wasm": dict.fromkeys(("weights", "shared", "arena", "peak"), 0)}


def honestly(request: Received, body: Any, payload: list[bytes]) -> Iterable[bytes]:
    """The frames of a correct answer."""
    return [bytes(f) for f in frames(encode(request.id, body, sum(len(part) for part in payload)), payload)]


def answer(request: Received) -> tuple[Any, list[bytes]]:
    """Return a page's answer to a request: outputs are y of [2, 3], of zeros."""
    asked = request.body
    match request.kind:
        case "OpenDevice":
            body = DeviceOpenedT()
            body.info = json.dumps({"vendor": "nobody", "features": [], "limits": {}})
        case "CreateSession":
            body = SessionCreatedT()
            body.session, body.info = 1, json.dumps({"wasm": {"simd": "fixed", "threads": 1}})
        case "Run" | "JsepRun":
            body, layout = RunResultT(), Layout()
            there = bool(request.kind == "JsepRun" or asked.outputsOnGpu)
            y = np.zeros((2, 3), np.float32)
            body.outputs = [on_gpu("y", 1, [2, 3], 9) if there else pack("y", y, layout)]
            body.info = json.dumps({"run_ms": 1.0})
            return body, [bytes(part) for part in layout.buffers]
        case "GetStats":
            body = StatsT()
            body.json = json.dumps({"memory": _MEMORY, "sessions": {}, "counters": {}})
        case "Ping":
            body = PongT()
        case "JsepAlloc":
            body = JsepBufferT()
            body.id = 7
        case "JsepCopyAsync":
            body = JsepBytesT()
            body.size = asked.size
            return body, [bytes(asked.size)]
        case "JsepCreateKernel":
            body = JsepKernelT()
            body.id = 3
        case _:
            body = AckT()
    return body, []


class FakePage:
    """The page and its worker.

    Args:
        garble: Makes the frames of the worker's answers.
        host: The page's own host.
    """

    def __init__(self, garble: Garble = honestly, host: Garble = honestly) -> None:
        self.garble, self.host = garble, host
        #: True once its first worker has come.
        self.has_worker = True
        #: Kinds of requests that it reports as running forever.
        self.working: set[str] = set()
        self._under_way: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def launcher(self) -> type[Launcher]:
        """A launcher of a browser with this page."""
        page = self

        class FakeLauncher(Launcher):
            name = "fake"

            async def start(self, url: str) -> None:
                page.open(url)

            async def close(self) -> None:
                page.close()

        return FakeLauncher

    def open(self, url: str) -> None:
        """Connect like the page at a URL."""
        parts = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        origin = f"{parts.scheme}://{parts.netloc}"
        self._start(int(query["port"]), query["token"], origin, True)
        if self.has_worker:
            self._start(int(query["port"]), f"{query['token']}.1", origin, False)

    def close(self) -> None:
        """Leave."""
        for task in self._tasks:
            task.cancel()

    def _start(self, *where: Any) -> None:
        task = asyncio.ensure_future(self._talk(*where))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, port: int, token: str, origin: str, host: bool) -> None:
        hello = HelloT()
        hello.token, hello.version, hello.userAgent = token, ProtocolVersion.current, "a fake"
        try:
            url = f"ws://127.0.0.1:{port}/?token={token}"
            async with connect(url, origin=origin, max_size=None) as socket:  # type: ignore[arg-type]
                await socket.send(b"".join(frames(encode(0, hello))))
                await self._listen(socket, origin, host)
        except ConnectionClosed:
            pass

    async def _listen(self, socket: ClientConnection, origin: str, host: bool) -> None:
        assembler = Assembler()
        async for frame in socket:
            assert isinstance(frame, bytes)
            whole = assembler.receive(frame)
            if whole is None:
                continue
            request = decode(*whole)
            if request.kind == "OpenWorker":
                self._start(request.body.port, request.body.token, origin, False)
            body, payload = answer(request)
            if request.kind in self.working:
                self._under_way.append(request.id)
                continue
            if isinstance(body, PongT):
                body.underWay = list(self._under_way)
            for part in (self.host if host else self.garble)(request, body, payload):
                await socket.send(part)

"""A connected page: requests to it and answers from it, in the loop's thread."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from py_ort.exceptions import BrowserError, ConnectionLost, PyOrtError, Timeout
from py_ort.schema.gen.Cancel import CancelT
from py_ort.schema.gen.Hello import HelloT
from py_ort.schema.gen.OpenDevice import OpenDeviceT
from py_ort.wire import Answer, Connection, LogLine, ProgressReport, ProtocolError
from py_ort.wire.framing import Buffer

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
#: How long a lost websocket waits for the launcher to say why (the browser died, the page crashed).
_GRACE = 1.0
#: What an error says after a page was lost.
_AGAIN = "; this session cannot go on: make a new InferenceSession, which starts a new browser"

Progress = Callable[[ProgressReport], None]


class Page:
    """A page that said hello.

    Args:
        socket: Its websocket.
        connection: The protocol's state, past the hello.
    """

    def __init__(self, socket: ServerConnection, connection: Connection) -> None:
        self._socket = socket
        self._connection = connection
        self._sending = asyncio.Lock()
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._progress: dict[int, Progress] = {}
        self._devices: dict[tuple[int, str], asyncio.Task[dict[str, Any]]] = {}
        #: Why the page is gone; None while it lives.
        self.lost: PyOrtError | None = None
        #: Called once when it is.
        self.on_lost: Callable[[], None] = lambda: None

    @property
    def hello(self) -> HelloT:
        """What the page said of itself."""
        assert self._connection.hello is not None
        return self._connection.hello

    async def request(
        self,
        body: Any,
        payload: Sequence[Buffer] = (),
        payload_size: int = 0,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Ask the page; return its answer.

        Args:
            body: A body of the generated API (`RunT`, …).
            payload: Its bytes; they must not change until the answer is there.
            payload_size: Their number, without the padding of the last one.
            timeout: Seconds; None waits as long as the page lives.
            progress: Called with what the page reports on the way.

        Raises:
            Timeout: It took longer.
            PyOrtError: The page answered with an error, or is gone.
        """
        if self.lost:
            raise _again(self.lost)
        request, frames = self._connection.request(body, payload, payload_size)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[request] = future
        if progress:
            self._progress[request] = progress
        try:
            async with asyncio.timeout(timeout):
                await self._send(frames)
                answer = await future
        except TimeoutError:
            self._cancel(request)
            name = type(body).__name__.removesuffix("T")
            raise Timeout(f"the page did not answer {name} within {timeout:g} s") from None
        except asyncio.CancelledError:
            self._cancel(request)
            raise
        finally:
            self._answers.pop(request, None)
            self._progress.pop(request, None)
        if answer.error:
            raise answer.error
        return answer

    def post(self, body: Any) -> None:
        """Send a request whose answer nobody waits for."""
        if self.lost is None:
            task = asyncio.ensure_future(self.request(body))
            task.add_done_callback(lambda t: t.cancelled() or t.exception())

    async def device(self, device_id: int, options: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        """Open a WebGPU device, once for the same id and options; return what the page says of it.

        Raises:
            NoAdapter: This browser has none.
        """
        key = (device_id, json.dumps(options, sort_keys=True))
        task = self._devices.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._devices[key] = asyncio.ensure_future(self._open_device(*key, timeout))
        return await asyncio.shield(task)

    async def _open_device(self, device_id: int, options: str, timeout: float | None) -> dict[str, Any]:
        body = OpenDeviceT()
        body.deviceId, body.options = device_id, options
        return json.loads((await self.request(body, timeout=timeout)).body.info or "{}")

    async def _send(self, frames: Any) -> None:
        # Frames of two messages must not mix.
        async with self._sending:
            try:
                for frame in frames:
                    await self._socket.send(frame)
            except ConnectionClosed:
                pass  # the answer's future will be told why
            except asyncio.CancelledError:
                # Half a message cannot be taken back: what follows it would be misread.
                await self.close(ConnectionLost("a message to the page was interrupted half-way"))
                raise

    def _cancel(self, request: int) -> None:
        body = CancelT()
        body.request = request
        self.post(body)

    async def read(self) -> None:
        """Read from the socket until the page is gone."""
        error: PyOrtError | None = None
        try:
            async for frame in self._socket:
                if isinstance(frame, str):
                    raise ProtocolError("the page sent text")
                self._take(self._connection.receive(frame))
        except ProtocolError as e:
            error = ConnectionLost(f"the connection to the page was closed: {e}")
        except ConnectionClosed:
            pass
        if error is None:
            # The launcher may be about to say what happened.
            for _ in range(int(_GRACE / 0.05)):
                if self.lost:
                    return
                await asyncio.sleep(0.05)
            error = ConnectionLost("the page closed its connection, or was closed")
        await self.close(error)

    def _take(self, event: Any) -> None:
        match event:
            case Answer():
                if (future := self._answers.get(event.request)) and not future.done():
                    future.set_result(event)
            case ProgressReport():
                if callback := self._progress.get(event.request):
                    callback(event)
            case LogLine():
                level = _LEVELS[min(event.severity, len(_LEVELS) - 1)]
                logging.getLogger(f"py_ort.page.{event.category or 'page'}").log(level, "%s", event.text)

    def lose(self, error: PyOrtError) -> None:
        """Fail everything that waits for this page, with this error."""
        if self.lost:
            return
        error.message += _AGAIN
        self.lost = error
        self._connection.close()
        for future in self._answers.values():
            if not future.done():
                future.set_exception(_again(error))
                future.exception()  # somebody may have stopped waiting
        self.on_lost()

    async def close(self, error: PyOrtError | None = None) -> None:
        """Close the websocket."""
        self.lose(error or BrowserError("the browser was closed"))
        await self._socket.close()


def _again(error: PyOrtError) -> PyOrtError:
    """A fresh exception for each one who waits: tracebacks must not be shared between threads."""
    fresh = type(error)(error.message)
    fresh.__dict__.update(error.__dict__)
    fresh.__traceback__ = None
    return fresh

"""A connected page: requests to it and answers from it, in the loop's thread."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from py_ort.browser.request import COMPUTING, OTHER_PROCESS, Generated, Progress, Request
from py_ort.browser.websocket import WebSocket
from py_ort.exceptions import (
    BrowserError,
    Cancelled,
    ConnectionLost,
    CoreCrashed,
    ProtocolError,
    PyOrtError,
    Timeout,
    WorkerEnded,
)
from py_ort.log import LEVELS, SessionLog, log_for
from py_ort.schema.gen.Cancel import CancelT
from py_ort.schema.gen.Hello import HelloT
from py_ort.schema.gen.Ping import PingT
from py_ort.schema.gen.ReleaseSession import ReleaseSessionT
from py_ort.signal_handlers import from_handler, suppress
from py_ort.wire import Answer, Connection, Logits, LogLine, NewTokens, ProgressReport
from py_ort.wire.framing import SMALL, Buffer

_log = logging.getLogger("py_ort.browser")
#: Seconds after the loss of a websocket in which the launcher may report its cause (the browser died, …).
_GRACE = 1.0
#: End of an error's text after a page was lost.
_AGAIN = "; this session cannot go on: make a new InferenceSession, which starts a new browser"
#: Seconds from the cancellation of a request of `COMPUTING` until its worker is ended: while the worker computes and
#: does not answer, and while it answers but waits for the GPU. The GPU process ends only with the whole browser.
WORKER_PATIENCE, GPU_PATIENCE = 2.0, 10.0


class Page:
    """A worker that said hello, or the browser's page itself.

    All methods run in the loop's thread, except `start`, which any thread may call. A thread that numbers a request
    sends it before it frees the websocket's lock, so that requests reach the page in the order of their numbers.

    Args:
        socket: The page's websocket.
        connection: The protocol's state, past the hello.
    """

    def __init__(self, socket: WebSocket, connection: Connection) -> None:
        self._socket = socket
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, Request] = {}
        #: Requests that the loop's thread will begin.
        self._posted: deque[Request] = deque()
        self._fetched = self._received = 0
        #: The number of the last Ping of `look_after`, until it is answered.
        self._asked_at: int | None = None
        #: Logs of the sessions in the page; their levels decide which of its messages are shown.
        self.logs: list[SessionLog] = []
        #: Numbers of the GPU buffers to free.
        self.freed: deque[int] = deque()
        #: True if the loop has been asked to free them.
        self.freeing = False
        #: The reason for the page's loss; None while it lives.
        self.lost: PyOrtError | None = None
        #: Called once when the page is lost.
        self.on_lost: Callable[[], None] = lambda: None
        #: Called when the page can no longer be used; arguments: the reason, and True if another worker is enough.
        self.on_useless: Callable[[str, bool], None] = lambda why, alone: None
        socket.on_bytes, socket.on_close = self._receive, self._socket_closed
        _pages.add(self)

    @property
    def token(self) -> str:
        """The token of its connection, by which the browser's page knows this worker."""
        return self._connection.token

    @property
    def busy(self) -> bool:
        """True if requests wait for an answer."""
        return bool(self._waiting)

    @property
    def hello(self) -> HelloT:
        """The page's Hello."""
        assert self._connection.hello is not None
        return self._connection.hello

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes of messages so far: `sent` to the page, including fetched payloads, and `received` from it."""
        return {"sent": self._socket.sent + self._fetched, "received": self._socket.received}

    def start(
        self,
        body: Any,
        payload: Sequence[Buffer] = (),
        payload_size: int = 0,
        *,
        url: str = "",
        timeout: float | None = None,
        progress: Progress | None = None,
        generated: Generated | None = None,
        unwanted: Callable[[Answer], object] | None = None,
        future: Future[Answer] | None = None,
    ) -> Future[Answer]:
        """Send a request from any thread; return the future of its answer. Cancelling it ends the work in the page.

        Args:
            body: A body of the generated API (`RunT`, …), or a `Prepared` message.
            payload: Bytes of the payload, in parts; they must not change before the answer.
            payload_size: Their number, without the padding of the last part.
            url: URL from which the page fetches the payload, if it is not sent.
            timeout: Seconds; None: see `Request.patience`.
            progress: Called with what the page reports on the way.
            generated: Called with what a generation makes in each step; see `NewTokens` and `Logits`.
            unwanted: Called with an answer that comes when nobody waits for it any more, to undo what it tells of.
            future: The one to return; its owner can cancel the request even if a signal handler raises in here.

        The future ends with:
            Timeout: The answer took longer.
            PyOrtError: The page answered with an error, or is gone.
        """
        request = Request(body, payload, payload_size, url, timeout, progress, generated, unwanted, future or Future())
        if self.lost:  # perhaps with the process that the loop is in
            request.fail(self.lost.again())
            return request.future
        try:
            if self._begin_at_once(request):
                self._loop.call_soon_threadsafe(self._limit, request)
            else:
                self._posted.append(request)
                self._loop.call_soon_threadsafe(self._begin_posted)
        except RuntimeError as e:  # the loop is closed: Python is about to end
            if from_handler(e):
                raise
            request.fail(ConnectionLost("py_ort was shut down"))
        return request.future

    async def request(
        self,
        body: Any,
        payload: Sequence[Buffer] = (),
        payload_size: int = 0,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        unwanted: Callable[[Answer], object] | None = None,
    ) -> Answer:
        """Send a request in the loop's thread and wait for the answer; see `start`."""
        request = Request(body, payload, payload_size, "", timeout, progress, unwanted=unwanted)
        self._begin(request)
        try:
            return await asyncio.wrap_future(request.future)
        except asyncio.CancelledError:
            if not request.future.cancel() and not request.future.exception():
                request.undo(request.future.result())
            raise

    def post(self, body: Any) -> None:
        """Send a request without waiting for the answer."""
        if self.lost is None:
            self._begin(Request(body, timeout=math.inf))

    def release(self, session: int, *, end_runs: bool = False) -> None:
        """Release a session, after its runs and generations; with `end_runs` these end now, with `Cancelled`."""
        for number, request in list(self._waiting.items()) if end_runs else ():
            if request.session == session and not request.cancelled:
                self._cancel(number)
                request.fail(Cancelled("the session was closed during its run"))
        body = ReleaseSessionT()
        body.session = session
        self.post(body)

    def _begin_at_once(self, request: Request) -> bool:
        """Send a small request in the calling thread, unless others come first; return True if it was sent.

        An exception of a signal handler leaves it sent, or not begun.
        """
        if request.url or request.payload_size >= SMALL:
            return False
        with self._socket.lock:
            if self._posted or not self._socket.idle:
                return False
            try:
                return self._socket.send_at_once(self._enter(request), request)
            finally:
                if not request.sent:
                    self._waiting.pop(request.number, None)
                    self._connection.pending.pop(request.number, None)

    def _begin_posted(self) -> None:
        while self._posted:
            self._begin(self._posted[0])
            self._posted.popleft()

    def _begin(self, request: Request) -> int:
        """Send a request; return its number, or 0 if it was cancelled or the page is lost."""
        with self._socket.lock:
            self._socket.send(self._enter(request))
        self._limit(request)
        return request.number

    def _enter(self, request: Request) -> Iterable[Buffer]:
        """Number a request and return its frames; none if it was cancelled or the page is lost."""
        if self.lost:
            request.fail(self.lost.again())
            return ()
        if request.future.cancelled():
            return ()
        try:
            request.number = self._connection.next_request
            _, frames = self._connection.request(request.body, request.payload, request.payload_size, request.url)
        except Exception as e:  # the body cannot be packed: the caller's mistake
            if from_handler(e):
                raise
            request.number = 0
            request.fail(e)
            return ()
        self._waiting[request.number] = request
        self._fetched += request.payload_size if request.url else 0
        request.future.add_done_callback(lambda future: self._done(future, request.number))
        return frames

    def _limit(self, request: Request) -> None:
        """Start the timeout of a request that was sent."""
        if request.patience < math.inf and self._waiting.get(request.number) is request:
            request.timer = self._loop.call_later(request.patience, self._time_out, request.number)

    def _time_out(self, number: int) -> None:
        if request := self._waiting.get(number):
            self._cancel(number)
            request.fail(Timeout(f"the page did not answer {request.name} within {request.patience:g} s"))

    def _done(self, future: Future[Answer], number: int) -> None:
        """Cancel the request in the page if its future was cancelled. Runs in any thread."""
        if future.cancelled():
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel, number)

    def _cancel(self, number: int) -> None:
        request = self._waiting.get(number)
        if request is None or self.lost:
            return
        request.cancelled = True
        body = CancelT()
        body.request = number
        heard = self._begin(Request(body, timeout=math.inf))
        if request.name in COMPUTING:
            self._loop.call_later(WORKER_PATIENCE, self._still_at_it, number, heard, WORKER_PATIENCE)

    def _still_at_it(self, number: int, heard: int, patience: float) -> None:
        """End the worker or the browser if a cancelled request still runs.

        Args:
            number: The request.
            heard: Number of the request to cancel it.
            patience: Seconds since the cancellation, without the wait for other requests.
        """
        request = self._waiting.get(number)
        if request is None or self.lost:
            return
        others = [one for other, one in list(self._waiting.items()) if other < number and one.name in COMPUTING]
        if any(not one.cancelled for one in others):
            # The worker may be running one of them, and no one has cancelled it.
            self._loop.call_later(WORKER_PATIENCE, self._still_at_it, number, heard, patience)
        elif heard in self._waiting or request.name == "CreateSession":
            self.on_useless(f"{request.name} was cancelled, and its node went on", True)
        elif patience < GPU_PATIENCE:
            rest = GPU_PATIENCE - patience
            self._loop.call_later(rest, self._still_at_it, number, heard, GPU_PATIENCE)
        else:
            self.on_useless(f"{request.name} was cancelled, and the GPU went on with it", False)

    def look_after(self) -> None:
        """Fail requests whose answers cannot come any more. Called at intervals while requests wait."""
        received, self._received = self._received, self._socket.received
        if self._connection.partial and received == self._received:
            self._lose_track("the page stopped in the middle of a message")
        elif self._asked_at is None:
            request = Request(PingT(), timeout=math.inf)
            self._asked_at = self._begin(request)
            request.future.add_done_callback(self._heard)

    def _heard(self, future: Future[Answer]) -> None:
        """The worker listed its open requests; any of ours missing there is lost."""
        asked_at, self._asked_at = self._asked_at or 0, None
        if future.exception() or self.lost:
            return
        known = set(future.result().body.underWay or ())
        if lost := [number for number in list(self._waiting) if number < asked_at and number not in known]:
            self._lose_track(f"the page knows nothing of request {lost[0]} ({self._waiting[lost[0]].name})")

    def _lose_track(self, text: str) -> None:
        self.end(ConnectionLost(f"the connection to the page was closed: {text}"))

    def _receive(self, part: memoryview) -> None:
        try:
            self._take(self._connection.receive(part))
        except Exception as e:  # an unreadable message must not leave requests waiting
            if not isinstance(e, ProtocolError):
                _log.exception("a message of the page could not be read")
            text = str(e) if isinstance(e, ProtocolError) else f"{type(e).__name__}: {e}"
            self.lose(ConnectionLost(f"the connection to the page was closed: {text}"))
            self._socket.close(1002, text[:100])

    def _take(self, event: Any) -> None:
        match event:
            case Answer():
                request = self._waiting.pop(event.request, None)
                if request is None:
                    return
                if request.timer:
                    request.timer.cancel()
                if isinstance(event.error, CoreCrashed):
                    self._crashed(request, event.error)
                elif event.error:
                    request.fail(event.error)
                else:
                    request.finish(event)
            case ProgressReport():
                if (request := self._waiting.get(event.request)) and request.progress:
                    request.progress(event)
            case NewTokens() | Logits():
                if (request := self._waiting.get(event.request)) and request.generated:
                    request.generated(event)
            case LogLine():
                level = LEVELS[min(event.severity, len(LEVELS) - 1)]
                log_for(self.logs, logging.getLogger(f"py_ort.page.{event.category or 'page'}"), level, event.text)

    def _crashed(self, request: Request, error: CoreCrashed) -> None:
        """Fail the request that crashed the core. Other waiting requests are started again."""
        request.fail(error)
        where = f" in node {error.node!r}" if error.node else ""
        self.on_useless(f"{request.name} crashed the core{where}", True)

    def _socket_closed(self) -> None:
        # The launcher may be about to report the cause.
        error = ConnectionLost("the page closed its connection, or was closed")
        self._loop.call_later(_GRACE, self.lose, error)

    def lose(self, error: PyOrtError) -> None:
        """Fail all requests that wait for this page with this error."""
        with self._socket.lock:
            if self.lost:
                return
            self.lost = error if isinstance(error, WorkerEnded) else _for_good(error)
            self._connection.close()
            waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            if request.timer:
                request.timer.cancel()
            request.fail(error.again())
        self.on_lost()

    def end(self, error: PyOrtError) -> None:
        """Lose the page with this error, and close the websocket."""
        self.lose(error)
        self._socket.close()

    def give_up(self, error: PyOrtError) -> None:
        """Lose the page; if its worker was ended, no other worker replaces it."""
        if isinstance(self.lost, WorkerEnded):
            self.lost = _for_good(error)
        else:
            self.lose(error)

    async def close(self) -> None:
        """Close the websocket."""
        self.end(BrowserError("the browser was closed"))


def _for_good(error: PyOrtError) -> PyOrtError:
    error.message = error.message.removesuffix(_AGAIN) + _AGAIN
    return error


#: Pages of this process; in a forked child, of its parent.
_pages: weakref.WeakSet[Page] = weakref.WeakSet()


def _stay_behind() -> None:
    """Lose all pages in a forked child: they and their thread stayed with the parent."""
    for page in list(_pages):
        page.lost = ConnectionLost(OTHER_PROCESS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stay_behind)

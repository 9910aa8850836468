"""The servers for pages: one HTTP server and one websocket server in this process, both on loopback."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

from py_ort.browser.captured import Captured
from py_ort.browser.connection_limits import Strangers
from py_ort.browser.http_server import HttpServer
from py_ort.browser.page import Page
from py_ort.browser.websocket import WebSocket
from py_ort.exceptions import ConnectionLost, PyOrtError
from py_ort.wire import Connection
from py_ort.wire.framing import FRAME_SIZE

if TYPE_CHECKING:
    from py_ort.browser.browser_options import BrowserOptions
    from py_ort.browser.gateway import Gateway

_log = logging.getLogger("py_ort.browser")


@dataclass
class _Expected:
    """A page that should connect.

    Attributes:
        future: The page.
        wanting: Its next step, in words.
    """

    future: asyncio.Future[Page]
    wanting: str


#: Next step of a page or worker after the request for this file.
_NEXT = {"/index.html": "the page to connect", "/worker.js": "the worker to connect"}
#: Suffix of the page's token for the worker that the page starts by itself (web/src/page/page.ts).
_FIRST_WORKER = ".1"


class Bridge:
    """Waits for pages. Lives in the loop's thread; see `start`."""

    def __init__(self) -> None:
        self.http = HttpServer(self._asked_for)
        self._expected: dict[str, _Expected] = {}
        self._server: asyncio.Server | None = None
        self._sockets: set[WebSocket] = set()
        self._strangers = Strangers()
        #: Gateways for browsers of other machines, by their addresses.
        self._gateways: dict[tuple[object, ...], Gateway] = {}
        #: Captured browsers, by the address of their URL.
        self._captured: dict[tuple[object, ...], Captured] = {}
        self._lending: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    @classmethod
    async def start(cls) -> Bridge:
        """Start both servers."""
        bridge = cls()
        bridge._server = await asyncio.get_running_loop().create_server(bridge._accept, "127.0.0.1", 0)
        return bridge

    @property
    def port(self) -> int:
        """Port of the websocket server."""
        assert self._server is not None
        return next(iter(self._server.sockets)).getsockname()[1]

    def expect(self, buffers: int = 1) -> tuple[str, asyncio.Future[Page], asyncio.Future[Page]]:
        """Return the URL to open in a browser, and the futures of the page and of the worker that it starts by itself.

        Args:
            buffers: Number of that worker's first GPU buffer.
        """
        port, token, page = self.expect_worker()
        query = {"port": port, "token": token, **({"buffers": buffers} if buffers > 1 else {})}
        return f"{self.http.origin}/index.html?{urlencode(query)}", page, self._expect(f"{token}{_FIRST_WORKER}")

    async def gateway(self, options: BrowserOptions) -> Gateway:
        """Return the gateway for browsers of other machines; start it if needed."""
        from py_ort.browser.gateway import Gateway  # aiohttp is slow to import

        where = _where(options)
        async with self._opening:
            if where not in self._gateways:
                made = Gateway(self.http.origin, f"ws://127.0.0.1:{self.port}/", options)
                await made.start()
                self._gateways[where] = made
        return self._gateways[where]

    async def captured(self, options: BrowserOptions) -> Captured:
        """Return the browsers captured at the address that the options name: one URL for each address."""
        gateway = await self.gateway(options) if options.host else None

        def url(token: str) -> str:
            local = f"{self.http.origin}/index.html?{urlencode({'port': self.port, 'capture': token})}"
            return gateway.url(local) if gateway else local

        where = _where(options)
        if where not in self._captured:
            self._captured[where] = Captured(url, gateway is not None)
        return self._captured[where]

    async def lend(self, options: BrowserOptions) -> str:
        """Lend captured browsers to other processes of py_ort; return their address for `Borrowed`."""
        captured = await self.captured(options)
        return f"{self.http.origin} ws://127.0.0.1:{self.port}/?{urlencode({'token': captured.lending})}"

    def expect_worker(self) -> tuple[int, str, asyncio.Future[Page]]:
        """Return port and token for the connection of a worker, and the connection's future."""
        token = secrets.token_urlsafe(24)
        return self.port, token, self._expect(token)

    def _expect(self, token: str) -> asyncio.Future[Page]:
        future: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
        self._expected[token] = _Expected(future, "the browser to ask for it")
        future.add_done_callback(lambda _: self._expected.pop(token, None))
        return future

    def waits_for(self, future: asyncio.Future[Page]) -> str:
        """Return the next step of this page or worker before it is connected, in words."""
        return next((one.wanting for one in self._expected.values() if one.future is future), "nothing")

    def _asked_for(self, target: str) -> None:
        """Note a request for a file of the page; runs in any thread."""
        expected = self._expected.get(self._token(target) or "")
        if expected and (wanting := _NEXT.get(urlsplit(target).path)):
            expected.wanting = wanting

    async def close(self) -> None:
        """Stop all servers."""
        for gateway in self._gateways.values():
            await gateway.close()
        if self._server:
            self._server.close()
        for socket in list(self._sockets):
            socket.close(1001, "py_ort ends")
        self.http.close()

    def _token(self, path: str) -> str | None:
        said = (parse_qs(urlsplit(path).query).get("token") or [""])[0].encode()
        known = [*self._expected]
        for captured in list(self._captured.values()):
            known += captured.token, captured.lending
        return next((token for token in known if hmac.compare_digest(token.encode(), said)), None)

    def _accept(self) -> WebSocket:
        socket = WebSocket(self._refusal, FRAME_SIZE)
        socket.on_connect = lambda: self._watch(socket)
        socket.on_open = lambda: self._greet(socket)
        return socket

    def _watch(self, socket: WebSocket) -> None:
        """Count a connection as a stranger until its handshake has shown a token."""
        self._sockets.add(socket)
        self._strangers.enter(socket, socket.close)
        loop, patience = asyncio.get_running_loop(), self._strangers.patience
        overdue = loop.call_later(patience + 0.1, self._strangers.close_overdue)

        def closed() -> None:
            self._sockets.discard(socket)
            self._strangers.leave(socket)
            overdue.cancel()

        socket.on_close = closed

    def _refusal(self, target: str, headers: Mapping[str, str]) -> HTTPStatus | None:
        origins = [f"http://{host}:{self.http.port}" for host in ("127.0.0.1", "localhost")]
        if headers.get("origin") not in origins or self._token(target) is None:
            return HTTPStatus.FORBIDDEN
        return None

    def _greet(self, socket: WebSocket) -> None:
        """Wait for the page's Hello."""
        self._strangers.leave(socket)
        token = self._token(socket.target) or ""
        if lender := next((each for each in self._captured.values() if each.lending == token), None):
            self._hand_over(lender, socket)
            return
        if expected := self._expected.get(token):
            expected.wanting = "its hello"
        connection = Connection(token)

        def receive(part: memoryview) -> None:
            try:
                connection.receive(part)
            except Exception as e:
                self._refuse(token, e)
                socket.close(1002, str(e)[:100])
                return
            if connection.hello is not None:
                self._welcome(token, socket, connection)

        socket.on_bytes = receive

    def _hand_over(self, captured: Captured, socket: WebSocket) -> None:
        """Lend a captured browser to another process for as long as that keeps its connection."""
        query = parse_qs(urlsplit(socket.target).query)

        async def lend() -> None:
            try:
                await captured.open(query["open"][0], float(query["patience"][0]))
            except PyOrtError:
                socket.close(1013)
                return
            captured.share(1)
            try:
                socket.send([b"\0"])
                await socket.wait_closed()
            finally:
                captured.share(-1)

        lending, forget = asyncio.ensure_future(lend()), socket.on_close
        self._lending.add(lending)
        lending.add_done_callback(self._lending.discard)

        def closed() -> None:
            lending.cancel()
            forget()

        socket.on_close = closed

    def _refuse(self, token: str, why: Exception) -> None:
        """Fail the wait for the page with this token."""
        _log.warning("a page was refused: %s", why)
        error = why if isinstance(why, PyOrtError) else ConnectionLost(f"its hello failed: {type(why).__name__}: {why}")
        error.message = f"the page was refused: {error.message}"
        expected = self._expected.get(token)
        if expected is not None and not expected.future.done():
            expected.future.set_exception(error)

    def _welcome(self, token: str, socket: WebSocket, connection: Connection) -> None:
        expected = self._expected.get(token)
        captured = next((each for each in self._captured.values() if each.token == token), None)
        if captured is None and (expected is None or expected.future.done()):
            socket.close(1008, "not expected")
            return
        forget = socket.on_close
        page = Page(socket, connection)
        lost = socket.on_close

        def closed() -> None:
            forget()
            lost()

        socket.on_close = closed
        if captured is not None:
            captured.arrived(page)
        elif expected is not None:
            expected.future.set_result(page)


def _where(options: BrowserOptions) -> tuple[object, ...]:
    """Return the options that determine a server's address for browsers, as a key."""
    return options.host, options.port, options.public_url, options.certificate

"""The servers that pages talk to: one HTTP server and one websocket server in this process, both on loopback."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from http import HTTPStatus
from urllib.parse import parse_qs, urlencode, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from py_ort.browser.http_server import HttpServer
from py_ort.browser.page import Page
from py_ort.wire import Connection, ProtocolError
from py_ort.wire.framing import FRAME_SIZE

_log = logging.getLogger("py_ort.browser")


class Bridge:
    """Waits for pages. Lives in the loop's thread; see `start`."""

    def __init__(self, http: HttpServer) -> None:
        self.http = http
        self._expected: dict[str, asyncio.Future[Page]] = {}
        self._server: Server | None = None

    @classmethod
    async def start(cls) -> Bridge:
        """Start both servers."""
        bridge = cls(HttpServer())
        origins = [f"http://{host}:{bridge.http.port}" for host in ("127.0.0.1", "localhost")]
        bridge._server = await serve(
            bridge._serve,
            "127.0.0.1",
            0,
            origins=origins,  # type: ignore[arg-type]
            process_request=bridge._check,
            max_size=FRAME_SIZE,
            compression=None,
            ping_interval=None,  # a page that computes is not dead; a dead one closes its socket
            close_timeout=2,
            server_header=None,
        )
        return bridge

    @property
    def port(self) -> int:
        """Port of the websocket server."""
        assert self._server is not None
        return next(iter(self._server.sockets)).getsockname()[1]

    def expect(self) -> tuple[str, asyncio.Future[Page]]:
        """Return the URL to open in a browser, and the page's future."""
        port, token, future = self.expect_worker()
        return f"{self.http.origin}/index.html?{urlencode({'port': port, 'token': token})}", future

    def expect_worker(self) -> tuple[int, str, asyncio.Future[Page]]:
        """Return the port and the token that a worker shall connect with, and the connection's future."""
        token = secrets.token_urlsafe(24)
        future: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
        self._expected[token] = future
        future.add_done_callback(lambda _: self._expected.pop(token, None))
        return self.port, token, future

    async def close(self) -> None:
        """Stop both servers."""
        if self._server:
            self._server.close()
        self.http.close()

    def _token(self, path: str) -> str | None:
        said = (parse_qs(urlsplit(path).query).get("token") or [""])[0].encode()
        return next((token for token in self._expected if hmac.compare_digest(token.encode(), said)), None)

    def _check(self, socket: ServerConnection, request: Request) -> Response | None:
        if self._token(request.path) is None:
            return socket.respond(HTTPStatus.FORBIDDEN, "wrong token\n")
        return None

    async def _serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        token = self._token(socket.request.path)
        future = self._expected.get(token or "")
        if token is None or future is None or future.done():
            await socket.close(1008, "not expected")
            return
        connection = Connection(token)
        try:
            while connection.hello is None:
                frame = await socket.recv()
                connection.receive(frame if isinstance(frame, bytes) else frame.encode())
        except ProtocolError as e:
            _log.warning("a page was refused: %s", e)
            await socket.close(1002, str(e)[:100])
            return
        except ConnectionClosed:
            return
        if future.done():
            await socket.close(1008, "too late")
            return
        page = Page(socket, connection)
        future.set_result(page)
        await page.read()

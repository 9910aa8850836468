"""The gateway for browsers of other machines: one port that forwards to our servers for page, weights and websocket.

The servers themselves stay on loopback. The gateway's URLs begin with a secret; other URLs are not found.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import secrets
import ssl
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, WSMessage, WSMsgType, web
from yarl import URL

from py_ort.browser.address import in_url
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.http_server import BLOBS
from py_ort.browser.network_port import NetworkPort
from py_ort.exceptions import BrowserError, InvalidArgument

_log = logging.getLogger("py_ort.browser")
_CHUNK = 1 << 20
#: Largest file in bytes that is not compressed: it fits into one packet.
_SMALL = 1 << 10
#: Headers that concern one connection only.
_HOP_BY_HOP = {"connection", "date", "keep-alive", "server", "transfer-encoding", "upgrade"}
_ASKED = ("Accept", "Range")
#: Headers that browsers accept only from secure pages; elsewhere they log a complaint.
_OF_SECURE_PAGES = {"cross-origin-opener-policy"}


class Gateway:
    """A gateway; all methods run in the loop's thread. `start` starts it.

    Args:
        files: The origin of our HTTP server.
        socket: The URL of our websocket server.
        options: Options of a remote browser: host, port, public_url, certificate.

    Attributes:
        origin: The gateway's origin, as browsers name it.
    """

    def __init__(self, files: str, socket: str, options: BrowserOptions) -> None:
        self._files, self._socket, self._options = files, socket, options
        self._secret = secrets.token_urlsafe(18)
        self._runner: web.AppRunner | None = None
        self._port: NetworkPort | None = None
        self._client: ClientSession | None = None
        #: Headers of our server that are not forwarded.
        self._left_out = set(_HOP_BY_HOP)
        self.origin = ""

    async def start(self) -> None:
        """Listen.

        Raises:
            InvalidArgument: The certificate cannot be used.
            BrowserError: The address is taken, or none of this machine's.
        """
        options = self._options
        tls = None
        if options.certificate:
            tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            try:
                tls.load_cert_chain(*options.certificate)
            except (OSError, ssl.SSLError) as e:
                raise InvalidArgument(f"certificate={options.certificate} cannot be used: {e}") from e
        app = web.Application()
        app.router.add_get(f"/{self._secret}/socket", self._hand_on_socket)
        app.router.add_get(f"/{self._secret}/{{path:.*}}", self._hand_on_file)  # HEAD, too
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        assert self._runner.server is not None
        self._port = NetworkPort(self._runner.server, tls)
        try:
            await self._port.listen(options.host, options.port)
        except OSError as e:
            await self.close()
            raise BrowserError(f"nothing can be served at {options.host}:{options.port}: {e.strerror or e}") from e
        self._client = ClientSession(auto_decompress=False, timeout=ClientTimeout(total=None, sock_connect=10))
        port = self._port.number
        local = f"{'https' if tls else 'http'}://{in_url(options.host)}:{port}"
        try:
            # As browsers spell the origin, for example without the default port.
            self.origin = str(URL(options.public_url or local).origin())
        except ValueError as e:
            await self.close()
            raise InvalidArgument(f"public_url={options.public_url!r} is no URL: {e}") from e
        _log.warning("py_ort listens at %s:%d, for browsers that open %s", options.host, port, self.origin)
        if self.origin.startswith("http:") and urlsplit(self.origin).hostname not in ("localhost", "127.0.0.1"):
            self._left_out |= _OF_SECURE_PAGES
            _log.warning(
                "without TLS a browser elsewhere gives a page neither WebGPU nor threads: BrowserOptions(certificate="
                "(FILE, KEY)), or a reverse proxy with TLS and its public_url"
            )

    def url(self, local: str) -> str:
        """Return the URL that a remote browser opens for a URL of our HTTP server."""
        there = urlsplit(local)
        return f"{self.origin}/{self._secret}{there.path}?{there.query}"

    async def close(self) -> None:
        """Stop listening."""
        if self._port:
            await self._port.close()
        if self._runner:
            await self._runner.cleanup()
        if self._client:
            await self._client.close()

    def _admit(self, request: web.Request) -> ClientSession:
        """Note that a request came with the secret; return the client of our own servers."""
        assert self._client is not None and self._port is not None and request.transport is not None
        self._port.shown(request.transport.get_extra_info("peername"))
        return self._client

    async def _hand_on_file(self, request: web.Request) -> web.StreamResponse:
        client = self._admit(request)
        target = request.rel_url.raw_path.removeprefix(f"/{self._secret}")
        if request.rel_url.raw_query_string:
            target += f"?{request.rel_url.raw_query_string}"
        asked = {name: request.headers[name] for name in _ASKED if name in request.headers}
        # Files of the page are code, which compresses well; weights and feeds hardly do.
        packs = not target.startswith(BLOBS) and "gzip" in request.headers.get("Accept-Encoding", "")
        method = "GET" if packs else request.method  # HEAD reports the compressed size, too
        try:
            async with client.request(
                method, URL(self._files + target, encoded=True), headers=asked, allow_redirects=False
            ) as answer:
                headers = {name: value for name, value in answer.headers.items() if name.lower() not in self._left_out}
                if packs and _is_large_and_whole(headers):
                    file = await answer.read()
                    try:
                        packed = await asyncio.to_thread(_packed, file)
                    except RuntimeError:  # Python is about to end, and threads accept no more work
                        packed = _packed(file)
                    headers |= {"Content-Encoding": "gzip", "Content-Length": str(len(packed))}
                    return web.Response(body=packed, headers=headers)
                response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
                await response.prepare(request)
                if request.method != "HEAD":
                    async for chunk in answer.content.iter_chunked(_CHUNK):
                        await response.write(chunk)
                await response.write_eof()
                return response
        except ClientError as e:
            # The answer broke off, so this one does, too; a request by HEAD gives the reason.
            raise ConnectionResetError(str(e)) from e

    async def _hand_on_socket(self, request: web.Request) -> web.StreamResponse:
        client = self._admit(request)
        if request.headers.get("Origin") != self.origin:
            raise web.HTTPForbidden
        outer = web.WebSocketResponse(compress=False, max_msg_size=0)
        url = URL(f"{self._socket}?{request.rel_url.raw_query_string}", encoded=True)
        try:
            async with client.ws_connect(url, origin=self._files, compress=0, max_msg_size=0) as inner:
                await outer.prepare(request)

                async def out() -> None:
                    async for message in inner:
                        await _send(outer, message)

                async def into() -> None:
                    async for message in outer:
                        await _send(inner, message)

                ways = [asyncio.ensure_future(out()), asyncio.ensure_future(into())]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
                    await outer.close(code=inner.close_code or 1000)
                    await inner.close()
        except ClientError:
            raise web.HTTPForbidden from None
        return outer


def _is_large_and_whole(headers: Mapping[str, str]) -> bool:
    return "Content-Range" not in headers and int(headers["Content-Length"]) > _SMALL


@lru_cache(16)
def _packed(file: bytes) -> bytes:
    return gzip.compress(file, 6, mtime=0)  # the page waits for it; level 9 takes 1.5 times as long and saves nothing


async def _send(to: object, message: WSMessage) -> None:
    if message.type is WSMsgType.BINARY:
        await to.send_bytes(message.data)  # type: ignore[attr-defined]

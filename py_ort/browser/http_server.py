"""The HTTP server: the built page, and the plans and weights of sessions, on loopback only.

If a part cannot be made, the answer is 500 with the reason. An answer that had begun breaks off; the page then asks by
HEAD, and the header `Py-Ort-Failure` has the reason.
"""

from __future__ import annotations

import bisect
import contextlib
import logging
import re
import secrets
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from py_ort.browser.connection_limits import Strangers
from py_ort.content_types import content_type
from py_ort.exceptions import EngineError, PyOrtError
from py_ort.folders import ASSETS
from py_ort.wire.parts import SMALL, LazyPart, Part, Stored, StreamedPart, cut, send, size_of

_log = logging.getLogger("py_ort")


#: Headers for cross-origin isolation, which gives the page SharedArrayBuffer and precise clocks.
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Accept-Ranges": "bytes",
}
#: Header with the reason why the answer before broke off; see `web/src/wire/fetching.ts`.
FAILURE = "Py-Ort-Failure"
_LONGEST = 2000
#: Bytes made on request that a blob keeps.
_KEPT = 128 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")
#: Path of blobs, whose names cannot be guessed.
BLOBS = "/blob/"
#: Seconds to send a file of the page to a stranger.
_SENDING = 60.0


class Blob:
    """Bytes to serve, in parts. Small parts are joined, and sent in one piece.

    Parts made on request stay for a while, because several ranges may need the same part.
    """

    def __init__(self, parts: Sequence[Part], content_type: str = "application/octet-stream") -> None:
        self.content_type = content_type
        self._parts = list(_joined(parts))
        self._starts, self.size = [], 0
        for part in self._parts:
            self._starts.append(self.size)
            self.size += size_of(part)
        #: The error that broke off the last answer; the next answer reports it.
        self.failure = ""
        #: The same error, if it is one of py_ort.
        self.error: PyOrtError | None = None
        self._made: OrderedDict[int, memoryview] = OrderedDict()
        self._lock = threading.Lock()

    def slices(self, start: int, end: int) -> Iterator[Stored]:
        """Yield the bytes [start, end)."""
        index = max(bisect.bisect_right(self._starts, start) - 1, 0)
        while start < end:
            part, at = self._parts[index], self._starts[index]
            if isinstance(part, StreamedPart):
                part.read(start - at, 1)  # raises before an answer begins
                yield cut(part, start - at, min(end, at + part.size) - start)
            else:
                yield self._bytes(index, part)[start - at : end - at]
            start, index = at + size_of(part), index + 1

    def _bytes(self, index: int, part: memoryview | LazyPart) -> memoryview:
        if not isinstance(part, LazyPart):
            return memoryview(part)
        with self._lock:
            made = self._made.pop(index, None)
            self._made[index] = made = made if made is not None else part.make()
            while len(self._made) > 1 and sum(kept.nbytes for kept in self._made.values()) > _KEPT:
                self._made.popitem(last=False)
            return made


def _joined(parts: Iterable[Part]) -> Iterator[memoryview | LazyPart | StreamedPart]:
    small, size = [], 0
    for part in parts:
        given = part if isinstance(part, (LazyPart, StreamedPart)) else memoryview(part).cast("B")
        big = not isinstance(given, memoryview) or given.nbytes >= SMALL
        if isinstance(given, memoryview) and not big:
            small.append(given)
            size += given.nbytes
        if size and (big or size >= 16 * SMALL):
            yield memoryview(b"".join(small))
            small, size = [], 0
        if big:
            yield given
    if size:
        yield memoryview(b"".join(small))


class HttpServer:
    """Serves `assets/` under / and published blobs under paths that cannot be guessed.

    Args:
        on_asset: Called, in any thread, with the target of each request for a file of the page.
    """

    def __init__(self, on_asset: Callable[[str], None] = lambda target: None) -> None:
        self._blobs: dict[str, Blob] = {}
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self._blobs, on_asset))
        self.port = self._server.server_port
        self.origin = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.2,), name="py_ort-http", daemon=True).start()

    def new_url(self) -> str:
        """Return a URL for `publish`."""
        return f"{self.origin}{BLOBS}{secrets.token_urlsafe(18)}"

    def publish(self, parts: Sequence[Part], content_type: str = "application/octet-stream", url: str = "") -> str:
        """Serve these bytes until `withdraw`; return their URL, by default a new one."""
        url = url or self.new_url()
        self._blobs[urlsplit(url).path] = Blob(parts, content_type)
        return url

    def replace(self, url: str, parts: Sequence[Part]) -> None:
        """Serve other bytes at a URL that `publish` returned."""
        path = urlsplit(url).path
        self._blobs[path] = Blob(parts, self._blobs[path].content_type)

    def error_of(self, url: str) -> PyOrtError | None:
        """Return the error of py_ort that broke off the last answer for a URL of `publish`, if any."""
        return self._blobs[urlsplit(url).path].error

    def withdraw(self, url: str) -> None:
        """Stop serving a URL that `publish` returned."""
        self._blobs.pop(urlsplit(url).path, None)

    def close(self) -> None:
        """Stop serving."""
        # Wakes the server's thread on Linux; elsewhere the thread notices within 0.2 s.
        with contextlib.suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)
        self._server.shutdown()
        self._server.server_close()


def check_assets() -> None:
    """Raise EngineError if the page or the core was not built."""
    missing = [n for n in ("index.html", "worker.js", "core.mjs", "core.wasm") if not (ASSETS / n).is_file()]
    if missing:
        raise EngineError(
            f"the page is not built ({', '.join(missing)} not in {ASSETS}): run `make build` in the repository, "
            "or install a wheel, which carries it"
        )


class _Server(ThreadingHTTPServer):
    """One thread for each connection; the number of strangers' connections is limited."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *args: Any) -> None:
        self.strangers = Strangers()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.strangers.enter(request, partial(_hang_up, request))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.strangers.leave(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        self.strangers.close_overdue()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore browsers that leave in the middle of an answer."""


def _hang_up(connection: socket.socket) -> None:
    """Wake the thread that reads from or writes to this connection; the thread closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300
    server: _Server

    def __init__(self, blobs: dict[str, Blob], on_asset: Callable[[str], None], *args: object) -> None:
        self._blobs = blobs
        self._on_asset = on_asset
        self._stranger = True
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost"):  # another name that points to this machine
            return self._refuse(HTTPStatus.FORBIDDEN)
        path = unquote(urlsplit(self.path).path)
        if blob := self._blobs.get(path):
            self._stranger = False
            self.server.strangers.leave(self.connection)
            return self._send(blob)
        if path == "/favicon.ico":  # every browser asks for one
            return self._refuse(HTTPStatus.NO_CONTENT)
        file = (ASSETS / (path.lstrip("/") or "index.html")).resolve()
        if not file.is_relative_to(ASSETS.resolve()) or not file.is_file():
            return self._refuse(HTTPStatus.NOT_FOUND)
        self._on_asset(self.path)
        self._give(_SENDING)
        self._send(Blob([file.read_bytes()], content_type(file.name)))
        self._give(None)

    def _give(self, seconds: float | None) -> None:
        """Give a stranger these seconds, by default the usual ones, for the next step."""
        if self._stranger:
            self.server.strangers.enter(self.connection, partial(_hang_up, self.connection), seconds)

    do_HEAD = do_GET

    def _send(self, blob: Blob) -> None:
        start, end, status = 0, blob.size, HTTPStatus.OK
        if match := _RANGE.match(self.headers.get("Range") or ""):
            first, last = match.groups()
            if first:
                start, end = int(first), min(int(last) + 1 if last else end, end)
            elif last:
                start = max(end - int(last), 0)
            if start >= end:
                return self._refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"bytes */{blob.size}")
            status = HTTPStatus.PARTIAL_CONTENT
        parts: Iterator[Stored] = iter(()) if self.command == "HEAD" else blob.slices(start, end)
        try:
            part = next(parts, None)
        except Exception as e:  # the part could not be made
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, words=self._note(blob, e))
        self.send_response(status)
        if status == HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{blob.size}")
        self.send_header("Content-Type", blob.content_type)
        self.send_header("Content-Length", str(end - start))
        if blob.failure:
            self.send_header(FAILURE, quote(blob.failure))
        self._end()
        try:
            while part is not None:
                send(self.connection, part)
                part = next(parts, None)
        except (TimeoutError, ConnectionError):
            raise
        except Exception as e:
            self._note(blob, e)
            self.close_connection = True

    def _note(self, blob: Blob, error: Exception) -> str:
        # Names of files may have bytes that are not text, which headers, logs and terminals refuse.
        words = f"{type(error).__name__}: {error}"[:_LONGEST]
        blob.failure = words.encode(errors="backslashreplace").decode()
        blob.error = error if isinstance(error, PyOrtError) else None
        _log.warning("weights or feeds could not be served: %s", blob.failure)
        return blob.failure

    def _refuse(self, status: HTTPStatus, content_range: str = "", words: str = "") -> None:
        body = words.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if content_range:
            self.send_header("Content-Range", content_range)
        self._end()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _end(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def handle(self) -> None:
        try:
            super().handle()
        except (TimeoutError, ConnectionError):
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass

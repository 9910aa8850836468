"""The site that both engines come from: plain files on loopback, compressed as web servers do, and counted."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from py_ort.content_types import content_type

_COMPRESSED = (".js", ".mjs", ".wasm", ".html")
_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>{title}</title>
<script type="application/json" id="settings">{settings}</script>
<script type="module" src="../page_bench.js"></script>
"""


class Site:
    """Serves files by their paths, for the browser's cache to keep, until it is closed.

    Attributes:
        sent: Bytes of bodies since this was set.
    """

    def __init__(self) -> None:
        self.sent = 0
        self._files: dict[str, tuple[str, bytes, bool]] = {}
        self._lock = threading.Lock()
        self._hear: Callable[[Any], None] = lambda told: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="py_ort bench site", daemon=True).start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def add(self, path: str, content: Path | bytes) -> None:
        """Serve a file."""
        data = content if isinstance(content, bytes) else content.read_bytes()
        packed = path.endswith(_COMPRESSED)
        self._files[path] = content_type(path), gzip.compress(data) if packed else data, packed

    def add_page(self, path: str, title: str, settings: Mapping[str, Any]) -> None:
        """Serve a page of the benchmark."""
        text = json.dumps(settings).replace("<", "\\u003c")
        self.add(path, _PAGE.format(title=title, settings=text).encode())

    def told(self) -> asyncio.Future[Any]:
        """Return what a page will tell next, in the event loop that runs."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def hear(told: Any) -> None:
            loop.call_soon_threadsafe(lambda: None if future.done() else future.set_result(told))

        self._hear = hear
        return future

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: As web servers have it: else bodies wait some 40 ms until the browser has confirmed their headers.
    disable_nagle_algorithm = True

    def __init__(self, site: Site, *args: Any) -> None:
        self._site = site
        super().__init__(*args)

    def do_GET(self) -> None:
        found = self._site._files.get(self.path)
        kind, data, packed = found or ("text/plain", b"", False)
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "max-age=3600")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(data)
        with self._site._lock:
            self._site.sent += len(data)

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self._site._hear(told)

    def log_message(self, *_: object) -> None:
        pass

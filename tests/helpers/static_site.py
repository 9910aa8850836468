"""A folder on loopback, served like `python3 -m http.server`: no ranges, and no Python for the page.

Pages send their results by POST to /told.
"""

from __future__ import annotations

import contextlib
import functools
import json
import queue
import threading
from collections.abc import Iterator, Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from py_ort import BrowserOptions
from py_ort.browser.launchers import launcher_for
from py_ort.browser.loop import loop_thread

ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
CORS = {"Access-Control-Allow-Origin": "*"}


class StaticSite:
    """Serves a folder until it is closed.

    Args:
        folder: Its files.
        headers: Sent with each answer.
        port: 0: a free one.
    """

    def __init__(self, folder: Path, headers: Mapping[str, str] | None = None, port: int = 0) -> None:
        self.folder = folder
        self.headers = dict(headers or {})
        #: Paths that were asked for.
        self.asked: list[str] = []
        #: Paths that are answered once their event is set.
        self.held: dict[str, threading.Event] = {}
        #: Paths whose answers stall after this number of bytes, until the page closes the connection.
        self.stalled: dict[str, int] = {}
        #: Paths of stalled answers, once the page has closed the connection.
        self.closed: queue.Queue[str] = queue.Queue()
        self._told: queue.Queue[Any] = queue.Queue()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", port), functools.partial(_Handler, self, directory=str(folder))
        )
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def told(self, timeout: float = 120.0) -> Any:
        """Return the next result of a page."""
        return self._told.get(timeout=timeout)

    def hear(self, text: bytes) -> None:
        self._told.put(json.loads(text))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(SimpleHTTPRequestHandler):
    extensions_map: ClassVar = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def __init__(self, site: StaticSite, *args: Any, **options: Any) -> None:
        self._site = site
        super().__init__(*args, **options)

    def end_headers(self) -> None:
        for name, value in self._site.headers.items():
            self.send_header(name, value)
        super().end_headers()

    def do_GET(self) -> None:
        self._site.asked.append(self.path)
        plain = self.path.partition("?")[0]
        if plain in self._site.stalled:
            return self._stall(self._site.stalled[plain])
        if self.path in self._site.held:
            self._site.held[self.path].wait(60)
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def _stall(self, most: int) -> None:
        data = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        for name, value in {"Content-Length": str(len(data)), "Accept-Ranges": "bytes", "ETag": '"one"'}.items():
            self.send_header(name, value)
        with contextlib.suppress(OSError):
            self.end_headers()
            self.wfile.write(data[:most])
            self.connection.recv(1)
        self._site.closed.put(self.path)

    def do_POST(self) -> None:
        self._site.hear(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def browsing(browser: str, url: str, **more: Any) -> Iterator[None]:
    """Run a separate browser at a URL, without Playwright and without a debugging protocol."""
    options = BrowserOptions(browser=browser, launcher="process", **more).settled()
    launcher = launcher_for(options)(options, lambda error: None)
    loop_thread().call(launcher.start(url))
    try:
        yield
    finally:
        loop_thread().call(launcher.close())

"""A page of a folder in headless Chromium, for the tests of web/: no websocket, no Python session."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from py_ort.browser.browser_options import NO_ADDRESS_BAR, NO_SANDBOX, QUIET
from py_ort.providers.webgpu.needs import NEEDS, SOFTWARE

WEB = Path(__file__).resolve().parents[1]
ADAPTERS = {
    "swiftshader": NEEDS.flags["software"],
    "default": ["--enable-unsafe-webgpu", "--enable-features=Vulkan"],
    # A software adapter with shader-f16, if the environment names a library that provides it to Chromium.
    "lavapipe": SOFTWARE,
}
LAVAPIPE = "PY_ORT_LAVAPIPE"
"""The environment variable with the library to load before others for the adapter "lavapipe"."""


class BrowserPage:
    """Builds a page with `node build.mjs ARGS --out FOLDER`, serves the folder on loopback and opens it.

    Args:
        build_args: For build.mjs.
        adapter: A key of `ADAPTERS`.
        ready: A global function that exists once the page has loaded.
    """

    def __init__(self, build_args: Sequence[str], ready: str, adapter: str = "swiftshader") -> None:
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        subprocess.run(["node", "build.mjs", *build_args, "--out", str(self.folder)], cwd=WEB, check=True)
        handler = functools.partial(_Handler, directory=str(self.folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        # Playwright's objects belong to the thread that made them, in which they then run an event loop.
        self._thread = ThreadPoolExecutor(1)
        self._thread.submit(self._open, ready, adapter).result()

    def _open(self, ready: str, adapter: str) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        args = [*ADAPTERS[adapter], *QUIET, NO_ADDRESS_BAR]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            args.append(NO_SANDBOX)
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        environment = {**os.environ, "LD_PRELOAD": os.environ[LAVAPIPE]} if adapter == "lavapipe" else None
        self._browser = self._playwright.chromium.launch(executable_path=chromium, args=args, env=environment)
        self._page = self._browser.new_page()
        self._page.on("console", lambda message: print(f"console: {message.text}", file=sys.stderr))
        self._page.on("pageerror", lambda error: print(f"page error: {error}", file=sys.stderr))
        self._page.goto(f"http://127.0.0.1:{self._server.server_port}/index.html")
        self._page.wait_for_function(f"globalThis.{ready} !== undefined", timeout=20_000)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate in the page; its exceptions are raised here."""
        return self._thread.submit(self._page.evaluate, expression, argument).result()

    def evaluate_in_workers(self, expression: str, argument: Any = None) -> int:
        """Evaluate in the page's workers; return their number."""

        def evaluate() -> int:
            for worker in self._page.workers:
                worker.evaluate(expression, argument)
            return len(self._page.workers)

        return self._thread.submit(evaluate).result()

    def close(self) -> None:
        self._thread.submit(self._close).result()
        self._thread.shutdown()
        self._server.shutdown()
        self._server.server_close()
        self._temporary.cleanup()

    def _close(self) -> None:
        self._browser.close()
        self._playwright.stop()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

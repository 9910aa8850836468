"""The page of `py-ort export --page` in every installed browser: in a frame of a page that reports the result."""

from __future__ import annotations

import asyncio
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import small_models

import py_ort
from py_ort.browser import find
from py_ort.browser.loop import loop_thread
from py_ort.browser.page_visit import visit

pytestmark = pytest.mark.browser
FRAME = """<!doctype html><iframe src="index.html?run"></iframe>
<script type="module">
  const frame = document.querySelector('iframe');
  for (;;) {
    const { body } = frame.contentDocument;
    const text = (id) => body.querySelector(id).innerText;
    const state = body?.dataset.state;
    if (state === 'done' || state === 'failed') {
      await fetch(`tell?${state} ${text('#status')} ${text('#outputs')} ${text('#facts')}`);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
</script>"""


class Handler(SimpleHTTPRequestHandler):
    def __init__(self, asked: Any, *arguments: Any, **options: Any) -> None:
        self._asked = asked
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        self._asked(self.path)
        super().do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


async def shown(folder: Path, browser: py_ort.BrowserOptions) -> str:
    """Return the frame's report."""
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    done: asyncio.Future[str] = loop.create_future()

    def asked(path: str) -> None:
        loop.call_soon_threadsafe(arrived.set)
        if path.startswith("/tell?"):
            loop.call_soon_threadsafe(done.set_result, path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, asked, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/frame.html"
        return (await visit(browser, url, arrived, done, 120))[1]
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()


@pytest.mark.parametrize("family", find.FAMILIES)
def test_the_page_runs(tmp_path: Path, family: str) -> None:
    if not find.installed(family) or (family == "webkit" and not shutil.which("Xvfb")):
        pytest.skip(f"{family} is not installed")
    py_ort.export(small_models.two_products(), tmp_path / "net.pyort", page=True, part_size=4096)
    (tmp_path / "frame.html").write_text(FRAME)
    told = loop_thread().call(shown(tmp_path, py_ort.BrowserOptions(browser=family)))
    assert told.startswith("/tell?done") and "float32" in told and "[1,%207]" in told
    assert ("does%20not%20run%20on" in told) == (family in ("webkit", "qtwebengine"))

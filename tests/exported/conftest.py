"""Pages of exported models, as people open them, and servers of models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compile_servers import Server, Site

from py_ort import BrowserOptions
from py_ort.browser import find

Served = Callable[[Path], str]
Serve = Callable[..., Server]
FLAGS = BrowserOptions(webgpu="software", sandbox=False).command_line()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser with WebGPU for the tests of a module: while Playwright runs in a thread, asyncio cannot."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(find.binary()), args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def plainly_served() -> Iterator[Served]:
    """Serve a folder by `python -m http.server`, which knows neither ranges nor our headers."""
    servers: list[subprocess.Popen[str]] = []

    def serve(folder: Path) -> str:
        command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        servers.append(server)
        assert server.stdout
        return f"http://127.0.0.1:{server.stdout.readline().split(' port ')[1].split()[0]}/"

    yield serve
    for server in servers:
        server.kill()
        server.communicate()


@pytest.fixture
def open_url(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a URL; afterwards its page must have had no errors."""
    contexts, wrong = [], []

    def show(url: str, *, dark: bool = False, width: int = 1200) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console",
            # Each browser requests an icon.
            lambda message: (
                message.type == "error"
                and not message.location["url"].endswith("/favicon.ico")
                and wrong.append(message.text)
            ),
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(url)
        return page

    yield show
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def compile_server(tmp_path: Path) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(*arguments: str) -> Server:
        servers.append(Server(tmp_path / "store", *arguments))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.close()


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def start(**models: bytes) -> Site:
        sites.append(Site({f"/{name}.onnx": model for name, model in models.items()}))
        return sites[-1]

    yield start
    for each in sites:
        each.shutdown()
        each.server_close()

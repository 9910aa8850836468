"""onnxruntime-web as the benchmark's other engine: finding its files, and a session of it in the page."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from py_ort.bench.npm import npm_package
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.options import BrowserOptions
from py_ort.browser.page import Page
from py_ort.browser.pool import Lease, pool
from py_ort.exceptions import EngineError, PyOrtError
from py_ort.schema.gen.CreateSession import CreateSessionT
from py_ort.schema.gen.ReleaseSession import ReleaseSessionT
from py_ort.schema.gen.Run import RunT
from py_ort.wire import Layout, from_description, pack

#: The npm package's version that is measured, unless ORT_WEB_DIST names another copy.
VERSION = "1.30.0"


@dataclass(frozen=True)
class Flavor:
    """One of onnxruntime-web's builds: its bundle, its wasm glue, and the provider it is asked for."""

    module: str
    glue: str
    provider: str


FLAVORS = {
    "wasm": Flavor("ort.wasm.min.mjs", "ort-wasm-simd-threaded", "wasm"),
    "webgpu": Flavor("ort.webgpu.min.mjs", "ort-wasm-simd-threaded.asyncify", "webgpu"),
    "jsep": Flavor("ort.min.mjs", "ort-wasm-simd-threaded.jsep", "webgpu"),
}


def find_dist() -> Path:
    """Return the `dist` folder of onnxruntime-web: ORT_WEB_DIST, or an npm install in the user's cache.

    Raises:
        EngineError: It is not there and npm cannot fetch it.
    """
    if named := os.environ.get("ORT_WEB_DIST"):
        return Path(named)
    try:
        return npm_package("onnxruntime-web", VERSION) / "node_modules/onnxruntime-web/dist"
    except EngineError as e:
        raise EngineError(f"{e}; or set ORT_WEB_DIST to a copy's folder") from e


class Peer:
    """onnxruntime-web in a worker of the page that our own sessions with these browser options use.

    Args:
        flavor: A key of `FLAVORS`.
        browser: The browser of both engines.
        threads: Of its wasm.
    """

    name = "onnxruntime-web"

    def __init__(self, flavor: str, browser: BrowserOptions, threads: int) -> None:
        self.flavor = flavor
        self._threads = threads
        self._browser = browser
        self._lease: Lease = loop_thread().call(pool().acquire(browser))
        self._urls: list[str] = []
        worker = self._lease.http.origin + "/peer.js"
        self._page: Page = loop_thread().call(pool().open_worker(self._lease, worker, browser.launch_timeout))
        self._session = 0
        self._model: str | None = None
        self._options: dict[str, Any] = {}

    @property
    def browser(self) -> str:
        """The browser's name and version."""
        return self._lease.launcher.description

    def create(self, model: bytes, timeout: float) -> None:
        """Load a model."""
        dist, build = find_dist(), FLAVORS[self.flavor]
        self._options = {
            "module": self._publish(dist / build.module, "text/javascript"),
            "mjs": self._publish(dist / f"{build.glue}.mjs", "text/javascript"),
            "wasm": self._publish(dist / f"{build.glue}.wasm", "application/wasm"),
            "provider": build.provider,
            "threads": self._threads,
        }
        self._model = self._lease.http.publish([model])
        self._urls.append(self._model)
        self._session = self._create({}, timeout)

    def _create(self, further: dict[str, Any], timeout: float) -> int:
        body = CreateSessionT()
        body.plan, body.options = self._model, json.dumps({**self._options, **further})
        return int(loop_thread().call(self._page.request(body, timeout=timeout)).body.session)

    def nodes(self, timeout: float) -> str:
        """Return where the nodes run, as far as it tells: it falls back to the CPU silently, unless that is forbidden.

        Loads the model once more.
        """
        provider = FLAVORS[self.flavor].provider
        if provider == "wasm":
            return provider
        try:
            session = self._create({"fallback": False}, timeout)
        except PyOrtError as e:
            if "fallback to CPU EP has been explicitly disabled" not in e.message:
                raise
            return "some wasm"
        self._release(session)
        return provider

    def _release(self, session: int) -> None:
        body = ReleaseSessionT()
        body.session = session
        soon(lambda: self._page.post(body))

    def _publish(self, file: Path, content_type: str) -> str:
        url = self._lease.http.publish([file.read_bytes()], content_type)
        self._urls.append(url)
        return url

    def run(self, feeds: dict[str, np.ndarray], timeout: float) -> tuple[dict[str, np.ndarray], float]:
        """Run once; return the outputs and the page's own milliseconds."""
        layout, body = Layout(), RunT()
        body.session = self._session
        body.feeds = [pack(name, array, layout) for name, array in feeds.items()]
        answer = loop_thread().call(self._page.request(body, layout.buffers, layout.size, timeout=timeout))
        outputs: dict[str, Any] = {d.name: from_description(d, answer.payload) for d in answer.body.outputs}
        return outputs, json.loads(answer.body.info)["run_ms"]

    def close(self) -> None:
        """Release the session, the worker and the share of the browser."""
        for url in self._urls:
            self._lease.http.withdraw(url)
        self._release(self._session)
        loop_thread().call(self._page.close())
        soon(lambda: pool().release(self._lease))

"""A worker of our page that runs models with onnxruntime-web."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from py_ort.browser.browser_shares import Browser, Lease
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.page import Page
from py_ort.browser.pool import pool
from py_ort.exceptions import PyOrtError
from py_ort.providers import on_device
from py_ort.runtime.peer.json_fields import (
    Decoded,
    DecodeTask,
    PeerOptions,
    PeerRunInfo,
    PeerRunOptions,
    PeerSessionInfo,
)
from py_ort.runtime.peer.package_files import FLAVORS, find_dist
from py_ort.schema.gen.CreateSession import CreateSessionT
from py_ort.schema.gen.Run import RunT
from py_ort.wire import Layout, from_description, pack

_KEPT: weakref.WeakKeyDictionary[Browser, dict[tuple[str, int], PeerWorker]] = weakref.WeakKeyDictionary()


class PeerWorker:
    """One of onnxruntime-web's builds in a worker of its own. The worker runs any number of models, one at a time.

    Args:
        lease: A share of the browser; its holder releases it after `close`.
        flavor: A key of `FLAVORS`.
        threads: Number of wasm threads.
        timeout: Seconds for the worker to start.

    Raises:
        EngineError: There is no onnxruntime-web.
        BrowserError: The worker cannot be started.
    """

    def __init__(self, lease: Lease, flavor: str, threads: int, timeout: float) -> None:
        dist, build = find_dist(), FLAVORS[flavor]
        self._http = lease.http
        self._page: Page = loop_thread().call(pool().open_worker(lease, "peer.js", timeout))
        self._urls: list[str] = []
        self._options: PeerOptions = {
            "module": self._publish(dist / build.module, "text/javascript"),
            "mjs": self._publish(dist / f"{build.glue}.mjs", "text/javascript"),
            "wasm": self._publish(dist / f"{build.glue}.wasm", "application/wasm"),
            "provider": build.provider,
            "threads": threads,
        }

    @classmethod
    def shared(cls, lease: Lease, flavor: str, threads: int, timeout: float) -> PeerWorker:
        """Return the worker that sessions of this browser share; a new one after `forget`."""
        kept = _KEPT.setdefault(lease.browser, {})
        worker = kept.get((flavor, threads))
        if worker is None or worker._page.lost:
            worker = kept[flavor, threads] = cls(lease, flavor, threads, timeout)
        return worker

    def forget(self) -> None:
        """Use this worker for no new sessions: an error may have left it in any state."""
        for kept in _KEPT.values():
            for key in [key for key, worker in kept.items() if worker is self]:
                del kept[key]

    def publish(self, model: bytes | memoryview) -> str:
        """Serve a model, or a file of its weights, for `create`; return its URL."""
        url = self._http.publish([model])
        self._urls.append(url)
        return url

    def withdraw(self, url: str) -> None:
        """Stop serving a model."""
        self._urls.remove(url)
        self._http.withdraw(url)

    def create(
        self, model: str, timeout: float | None, *, fallback: bool = True, session: Mapping[str, Any] | None = None
    ) -> tuple[int, PeerSessionInfo]:
        """Load a model.

        Args:
            model: URL of the model.
            timeout: Seconds.
            fallback: False if nodes on the CPU are errors.
            session: Fields of onnxruntime-web's session options.

        Returns:
            The session's number, and the page's account.
        """
        body = CreateSessionT()
        options: PeerOptions = {**self._options, "fallback": fallback, "session": session or {}}
        body.plan, body.options = model, json.dumps(options)
        answer = loop_thread().call(self._page.request(body, timeout=timeout))
        return int(answer.body.session), cast(PeerSessionInfo, answer.told())

    def run(
        self, session: int, feeds: dict[str, np.ndarray], timeout: float | None
    ) -> tuple[dict[str, np.ndarray], float]:
        """Run once; return the outputs and the page's time in milliseconds."""
        layout, body = Layout(), RunT()
        body.session = session
        body.feeds = [pack(name, array, layout) for name, array in feeds.items()]
        answer = loop_thread().call(self._page.request(body, layout.buffers, layout.size, timeout=timeout))
        outputs: dict[str, Any] = {d.name: from_description(d, answer.payload) for d in answer.body.outputs}
        return outputs, cast(PeerRunInfo, answer.told())["run_ms"]

    def decode(self, session: int, task: DecodeTask, timeout: float | None) -> Decoded:
        """Generate a text; return it and its times.

        Args:
            session: Number of the session.
            task: The prompt and the number of tokens.
            timeout: Seconds.
        """
        body, options = RunT(), PeerRunOptions(decode=task)
        body.session, body.options = session, json.dumps(options)
        return cast(Decoded, loop_thread().call(self._page.request(body, timeout=timeout)).told())

    def all_on(self, model: str, timeout: float) -> bool:
        """Return True if the provider runs all nodes of a model. Otherwise onnxruntime-web uses the CPU without notice.

        This loads the model again.
        """
        if not on_device(self._options["provider"]):
            return True
        try:
            session, _ = self.create(model, timeout, fallback=False)
        except PyOrtError as e:
            if "fallback to CPU EP has been explicitly disabled" not in e.message:
                raise
            return False
        self.release(session)
        return True

    def release(self, session: int) -> None:
        """Release a session."""
        soon(lambda: self._page.release(session))

    def close(self) -> None:
        """End the worker."""
        for url in list(self._urls):
            self.withdraw(url)
        loop_thread().call(self._page.close())

    def _publish(self, file: Path, content_type: str) -> str:
        url = self._http.publish([file.read_bytes()], content_type)
        self._urls.append(url)
        return url

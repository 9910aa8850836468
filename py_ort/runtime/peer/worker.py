"""A worker of our page that runs models by onnxruntime-web."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from py_ort.browser.lease import Browser, Lease
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.page import Page
from py_ort.browser.pool import pool
from py_ort.exceptions import PyOrtError
from py_ort.providers import on_device
from py_ort.runtime.peer.files import FLAVORS, find_dist
from py_ort.runtime.peer.json_fields import (
    Decoded,
    DecodeTask,
    PeerOptions,
    PeerRunInfo,
    PeerRunOptions,
    PeerSessionInfo,
)
from py_ort.schema.gen.CreateSession import CreateSessionT
from py_ort.schema.gen.Run import RunT
from py_ort.wire import Layout, from_description, pack

_KEPT: weakref.WeakKeyDictionary[Browser, dict[tuple[str, int], PeerWorker]] = weakref.WeakKeyDictionary()


class PeerWorker:
    """One of onnxruntime-web's builds in a worker of its own, where any number of models run, one at a time.

    Args:
        lease: A share of the browser, which its holder gives back after `close`.
        flavor: A key of `FLAVORS`.
        threads: Of its wasm.
        timeout: Seconds for the worker to start.

    Raises:
        EngineError: There is no onnxruntime-web.
        BrowserError: The worker cannot be had.
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
        """Let no more sessions come to this worker: what failed once may have left it in any state."""
        for kept in _KEPT.values():
            for key in [key for key, worker in kept.items() if worker is self]:
                del kept[key]

    def publish(self, model: bytes | memoryview) -> str:
        """Have a model, or a file of its weights, ready for `create`; return its URL."""
        url = self._http.publish([model])
        self._urls.append(url)
        return url

    def withdraw(self, url: str) -> None:
        """Take a model away."""
        self._urls.remove(url)
        self._http.withdraw(url)

    def create(
        self, model: str, timeout: float | None, *, fallback: bool = True, session: Mapping[str, Any] | None = None
    ) -> tuple[int, PeerSessionInfo]:
        """Load a model.

        Args:
            model: Its URL.
            timeout: Seconds.
            fallback: False if a node on the CPU is to be an error.
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
        """Run once; return the outputs and the page's own milliseconds."""
        layout, body = Layout(), RunT()
        body.session = session
        body.feeds = [pack(name, array, layout) for name, array in feeds.items()]
        answer = loop_thread().call(self._page.request(body, layout.buffers, layout.size, timeout=timeout))
        outputs: dict[str, Any] = {d.name: from_description(d, answer.payload) for d in answer.body.outputs}
        return outputs, cast(PeerRunInfo, answer.told())["run_ms"]

    def decode(self, session: int, task: DecodeTask, timeout: float | None) -> Decoded:
        """Write a text; return it and its times.

        Args:
            session: Its number.
            task: What to write behind what.
            timeout: Seconds.
        """
        body, options = RunT(), PeerRunOptions(decode=task)
        body.session, body.options = session, json.dumps(options)
        return cast(Decoded, loop_thread().call(self._page.request(body, timeout=timeout)).told())

    def all_on(self, model: str, timeout: float) -> bool:
        """Return whether its provider runs all nodes: else it falls back to the CPU silently, unless that is forbidden.

        Loads the model once more.
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

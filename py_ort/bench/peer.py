"""onnxruntime-web as the benchmark's other engine."""

from __future__ import annotations

import numpy as np

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.pool import Lease, pool
from py_ort.runtime.peer.package_files import FLAVORS, PEER, VERSION, find_dist, flavor_of
from py_ort.runtime.peer.worker import PeerWorker

__all__ = ["FLAVORS", "VERSION", "Peer", "find_dist", "flavor_of"]


class Peer:
    """onnxruntime-web in a worker of the page that our own sessions with these browser options use.

    Args:
        flavor: A key of `FLAVORS`.
        browser: The browser of both engines.
        threads: Threads of its wasm.
    """

    name = PEER

    def __init__(self, flavor: str, browser: BrowserOptions, threads: int) -> None:
        self.flavor = flavor
        self._lease: Lease = loop_thread().call(pool().acquire(browser))
        # Its own: loading onnxruntime-web counts.
        try:
            self._worker = PeerWorker(self._lease, flavor, threads, browser.launch_timeout)
        except BaseException:
            soon(lambda: pool().release(self._lease))
            raise
        self._session = 0
        self._model = ""

    @property
    def browser(self) -> str:
        """The browser's name and version."""
        return self._lease.launcher.description

    def create(self, model: bytes, timeout: float) -> None:
        """Load a model."""
        self._model = self._worker.publish(model)
        self._session, _ = self._worker.create(self._model, timeout)

    def nodes(self, timeout: float) -> str:
        """Return where the nodes run, as far as it tells; loads the model once more."""
        return FLAVORS[self.flavor].provider if self._worker.all_on(self._model, timeout) else "some wasm"

    def run(self, feeds: dict[str, np.ndarray], timeout: float) -> tuple[dict[str, np.ndarray], float]:
        """Run once; return the outputs and the page's own milliseconds."""
        return self._worker.run(self._session, feeds, timeout)

    def close(self) -> None:
        """End the worker, and release the share of the browser."""
        self._worker.close()
        soon(lambda: pool().release(self._lease))

"""onnxruntime-web as transformers.js runs decoders: caches stay on the GPU, logits come down, all in the page."""

from __future__ import annotations

import numpy as np

from py_ort.bench.decode.decoder import Decoder
from py_ort.bench.decode.engine import Written
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.pool import Lease, pool
from py_ort.providers import on_device
from py_ort.runtime.peer.json_fields import DecodeTask
from py_ort.runtime.peer.package_files import FLAVORS, PEER
from py_ort.runtime.peer.worker import PeerWorker


class PeerLoop:
    """A decoder in a worker of the page, by the page's clock.

    Args:
        decoder: The model.
        flavor: A key of `FLAVORS`.
        browser: Where.
        threads: Threads of wasm.
        timeout: Seconds for the creation or a text.
    """

    name = PEER
    loop = "growing"
    adapter = ""

    def __init__(self, decoder: Decoder, flavor: str, browser: BrowserOptions, threads: int, timeout: float) -> None:
        self._decoder, self._timeout = decoder, timeout
        self._lease: Lease = loop_thread().call(pool().acquire(browser))
        try:
            self._worker = PeerWorker(self._lease, flavor, threads, browser.launch_timeout)
            session = {"externalData": [{"path": name, "data": self._publish(name)} for name in decoder.external]}
            if on_device(FLAVORS[flavor].provider):
                kept = {cache.present: "gpu-buffer" for cache in decoder.caches}
                session["preferredOutputLocation"] = kept  # type: ignore[assignment]
            self._session, _ = self._worker.create(self._publish(decoder.path.name), timeout, session=session)
        except BaseException:
            soon(lambda: pool().release(self._lease))
            raise

    def _publish(self, name: str) -> str:
        file = np.memmap(self._decoder.path.with_name(name), np.uint8, "r")
        return self._worker.publish(file.data)

    def write(self, prompt: np.ndarray, count: int) -> Written:
        """Take a prompt [n] in, and write `count` words behind it."""
        decoder = self._decoder
        task: DecodeTask = {
            "prompt": prompt.tolist(),
            "count": count,
            "inputs": {
                "input_ids": np.dtype(decoder.ids).name,
                **{n: np.dtype(t).name for n, t in decoder.numbers.items()},
            },
            "type": np.dtype(decoder.dtype).name,
            "caches": [{"past": c.past, "present": c.present, "dims": [1, c.heads, 0, c.size]} for c in decoder.caches],
        }
        told = self._worker.decode(self._session, task, self._timeout)
        return Written(told["prompt_ms"], told["step_ms"], told["words"])

    def close(self) -> None:
        """End the worker, and give the share of the browser back."""
        self._worker.close()
        soon(lambda: pool().release(self._lease))

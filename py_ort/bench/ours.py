"""The engines that are timed: what they have in common, and py_ort as one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from py_ort.bench.floor import Floors
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.pool import pool
from py_ort.providers import with_cpu
from py_ort.providers.resolution import REQUIRE
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.options import SessionOptions


class Engine(Protocol):
    """An engine to time; `browser` is the browser's name and version."""

    name: str

    @property
    def browser(self) -> str: ...

    def create(self, model: bytes, timeout: float) -> None: ...
    def run(self, feeds: dict[str, np.ndarray], timeout: float) -> tuple[dict[str, np.ndarray], float]: ...
    def nodes(self, timeout: float) -> str: ...
    def close(self) -> None: ...


class Ours:
    """py_ort as an `Engine`."""

    name = "py_ort"

    def __init__(self, provider: str, browser: BrowserOptions, threads: int) -> None:
        self._provider, self._browser, self._threads = provider, browser, threads
        # The browser is there before the clock starts, as it is for the other engine.
        self._lease = loop_thread().call(pool().acquire(browser))
        self.session: InferenceSession | None = None

    @property
    def browser(self) -> str:
        """The browser's name and version."""
        return self._lease.launcher.description

    def create(self, model: bytes, timeout: float) -> None:
        """Load a model on this provider; the CPU runs the nodes that it cannot.

        Raises:
            NoAdapter, EPFail: The browser has not this provider.
        """
        options = SessionOptions()
        options.add_session_config_entry(REQUIRE, "1")
        options.create_timeout = options.run_timeout = timeout
        options.intra_op_num_threads = self._threads
        self.session = InferenceSession(model, options, with_cpu(self._provider), browser=self._browser)

    def run(self, feeds: dict[str, np.ndarray], timeout: float) -> tuple[dict[str, np.ndarray], float]:
        """Run once; return the outputs and the page's own milliseconds."""
        assert self.session is not None
        names = [arg.name for arg in self.session.get_outputs()]
        outputs = self.session.run(names, feeds)
        return dict(zip(names, outputs, strict=True)), self.session.stats()["last_run"]["run_ms"]

    def nodes(self, timeout: float) -> str:
        """Return where the nodes run."""
        assert self.session is not None
        return ", ".join(f"{count} {name}" for name, count in self.session.placement().counts().items() if count)

    def floor(
        self, floors: Floors, model: bytes, feeds: Mapping[str, np.ndarray], outputs: Mapping[str, Any]
    ) -> dict[str, float] | None:
        """Return the lower bound of the last run's time on this device."""
        assert self.session is not None
        found = floors.of(self.session, self._provider, self._threads, self._browser, model, feeds, outputs)
        return found.as_dict() if found else None

    def close(self) -> None:
        """Close the session."""
        if self.session is not None:
            self.session.close()
        soon(lambda: pool().release(self._lease))

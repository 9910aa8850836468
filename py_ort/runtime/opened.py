"""A session that is ready to run in a page."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from py_ort.exceptions import Timeout, WorkerEnded
from py_ort.profiling.account import Account
from py_ort.runtime.shape_plans import ShapePlans
from py_ort.uninterrupted import NotYet, uninterrupted
from py_ort.wire.json_fields import SessionInfo

if TYPE_CHECKING:
    from py_ort.compiler import NodeArg
    from py_ort.compiler.load import ModelMetadata
    from py_ort.providers import Placement
    from py_ort.runtime.loaded import Loaded
    from py_ort.runtime.page_runtime import PageRuntime

T = TypeVar("T")


@dataclass
class Opened:
    """A model that is ready to run in a page. Only the page still holds the model and its weights.

    Attributes:
        runtime: The session's share of the page.
        session: The session in the page.
        load: Loads the session again, into the worker that replaced the last one.
        providers: Providers that may run nodes, best first.
        created: The page's account of the session's creation.
        times: `browser_ms`, `create_ms` and `compile_ms`, measured in Python; see `SessionBase.stats`.
        shape_plans: Plans for the shapes of runs; None if they would gain nothing.
        account: The phases of the session's creation, for profiles.
    """

    runtime: PageRuntime
    session: Loaded
    load: Callable[[], tuple[Loaded, SessionInfo]]
    providers: list[str]
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    overridable: list[NodeArg]
    metadata: ModelMetadata
    placement: Placement
    created: SessionInfo
    times: dict[str, float]
    shape_plans: ShapePlans | None = None
    account: Account = field(default_factory=Account)
    _loading: threading.Lock = field(default_factory=threading.Lock)
    _process: int = field(default_factory=os.getpid)

    @property
    def elsewhere(self) -> bool:
        """True if the session belongs to the process that this one is a fork of."""
        return self._process != os.getpid()

    def come_back(self, patience: float | None = None) -> None:
        """Load the session into the next worker if its worker was ended.

        Args:
            patience: Seconds to wait; None: no limit.

        Raises:
            Timeout: Loading takes longer; it continues in the background.
            PyOrtError: The session cannot be loaded again.
        """
        until = None if patience is None else time.perf_counter() + patience
        while self.session.gone:
            left = None if until is None else max(until - time.perf_counter(), 0.0)
            try:
                with contextlib.suppress(WorkerEnded):  # again, meanwhile
                    uninterrupted(self._come_back, patience=left)
            except NotYet:
                raise Timeout(
                    "the session's worker had to be ended, and the next one has not loaded it within "
                    f"{patience:.3g} s: it goes on, and a later run finds it; or give the run a longer timeout"
                ) from None

    def _come_back(self) -> None:
        with self._loading:
            if self.session.gone:
                self.session, self.created = self.load()

    def steadily(self, ask: Callable[[], T]) -> T:
        """Return the answer to a question to the session; ask again if its worker is ended meanwhile."""
        while True:
            self.come_back()
            try:
                return ask()
            except WorkerEnded:
                continue

    def release(self, *, end_runs: bool = False) -> None:
        """Release the share of the page, except in a forked child. See `Page.release`."""
        if self.elsewhere:
            return
        if self.shape_plans:
            self.shape_plans.close()
        self.runtime.release(end_runs=end_runs)

    def __del__(self) -> None:
        self.release()

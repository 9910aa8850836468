"""The sessions of one model in a page: the main one, and those for other constants or fewer outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from threading import Lock
from typing import Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.request import OTHER_PROCESS
from py_ort.exceptions import ConnectionLost, PyOrtError
from py_ort.log import SessionLog
from py_ort.runtime.model_changes import ModelChanges, changes_of
from py_ort.runtime.opened import Opened
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.session_creation import Progress, Providers, SessionCreation
from py_ort.runtime.session_model import Origin
from py_ort.runtime.slow_steps import SlowSteps


class PageSessions:
    """Sessions of a model, loaded when they are first needed.

    Args:
        origin: The model.
        options: Options of the session.
        browser: Options of the browser.
        log: The session's log.

    Attributes:
        browser: Options of the browser.
        opened: The main session; None before the first `load`, and after `release`.
        variants: The others, by fed initializers and outputs.
    """

    def __init__(self, origin: Origin, options: SessionOptions, browser: BrowserOptions, log: SessionLog) -> None:
        self._origin, self._options, self.browser, self._log = origin, options, browser, log
        self.opened: Opened | None = None
        self.variants: dict[Any, Opened] = {}
        self._making_variant = Lock()

    def load(
        self,
        providers: Providers | None,
        provider_options: Sequence[Mapping[str, Any]] | None,
        progress: Progress | None = None,
    ) -> Opened:
        """Load the main session for these providers, in place of all earlier ones; if that fails, they stay."""
        origin, wanted, changes = self._origin.anew(), (providers, provider_options), changes_of(self._options)
        opened = self._load(origin, wanted, changes, progress)
        self.release()
        self.opened = opened
        self._origin, self._wanted, self._changes = origin, wanted, changes
        return opened

    def _load(
        self,
        origin: Origin,
        providers: tuple[Providers | None, Sequence[Mapping[str, Any]] | None],
        changes: ModelChanges,
        progress: Progress | None = None,
    ) -> Opened:
        with nullcontext(progress) if progress else SlowSteps(self._log) as report:
            return SessionCreation(origin, self._options, providers, self.browser, report, self._log, changes).open()

    def main(self) -> Opened:
        """Return the main session.

        Raises:
            PyOrtError: It was closed.
            ConnectionLost: It belongs to the process that this one is a fork of.
        """
        if self.opened is None:
            raise PyOrtError("this session is closed: create another InferenceSession")
        if self.opened.elsewhere:
            raise ConnectionLost(OTHER_PROCESS)
        return self.opened

    def for_run(self, wanted: Sequence[str], feeds: Collection[str], only_wanted: bool) -> Opened:
        """Return the session for a run; the first run that needs a variant loads it.

        Initializers that may be fed are constants in the main session, because that is much faster.

        Args:
            wanted: Outputs of the run.
            feeds: Names of the run's feeds.
            only_wanted: True to compute no other outputs.
        """
        opened = self.main()
        fed = frozenset(arg.name for arg in opened.overridable if arg.name in feeds)
        only = set(wanted) if only_wanted else {arg.name for arg in opened.outputs}
        if not fed and len(only) == len(opened.outputs):
            return opened
        key = fed, frozenset(only)
        with self._making_variant:
            if key not in self.variants:
                names = None if len(only) == len(opened.outputs) else sorted(only)
                changes = self._changes.but(fed=fed, outputs=names)
                self.variants[key] = self._load(self._origin, self._wanted, changes)
            return self.variants[key]

    def release(self, *, end_runs: bool = False) -> None:
        """Release all sessions; see `Page.release`."""
        opened, self.opened = self.opened, None
        variants, self.variants = self.variants, {}
        for one in (opened, *variants.values()):
            if one is not None:
                one.release(end_runs=end_runs)

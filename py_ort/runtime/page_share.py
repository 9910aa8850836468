"""A session's share of a page while the session is made: owned by the session in the end, or given back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from py_ort.boundary import typed_errors
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.pool import Lease, pool
from py_ort.log import SessionLog
from py_ort.runtime.options import SessionOptions
from py_ort.uninterrupted import wait_for

if TYPE_CHECKING:
    from py_ort.providers.resolution import Wanted
    from py_ort.runtime.page_runtime import PageRuntime


class PageShare:
    """A share of a browser with its providers, until the session owns it or it is returned.

    Attributes:
        waited: Seconds of waiting for the browser.
    """

    def __init__(self, browser: BrowserOptions, options: SessionOptions, log: SessionLog) -> None:
        self._browser, self._options, self._log = browser, options, log
        self._share = _Share(browser)
        self._runtime: PageRuntime | None = None
        self.waited = 0.0

    def open(self, wanted: Wanted) -> PageRuntime:
        """Open the providers; in another browser if this one has lost its GPU for good."""
        from py_ort.runtime.devices import AdapterGone

        with typed_errors("opening the providers"):
            try:
                return self._open(wanted)
            except AdapterGone as e:
                self._log.warning("%s: starting another browser", e.message)
                self.give_back()
                self._share = _Share(self._browser)
                return self._open(wanted)

    def _open(self, wanted: Wanted) -> PageRuntime:
        from py_ort.runtime.page_runtime import PageRuntime

        began = time.perf_counter()
        lease = self._share.take()
        self.waited += time.perf_counter() - began
        self._runtime = PageRuntime(lease, self._browser, self._log)
        loop_thread().call(self._runtime.open(wanted, self._options.create_timeout))
        return self._runtime

    def give_back(self) -> None:
        """Release everything: there will be no session."""
        if self._runtime is not None:
            self._runtime.release()
        self._share.give_back()


class _Share:
    """A share of a browser, which the loop's thread acquires while the caller reads the model.

    Args:
        options: Options of the browser.
    """

    def __init__(self, options: BrowserOptions) -> None:
        self._lease: Lease | None = None
        self._unwanted = False
        self._coming = loop_thread().submit(self._acquire(options))

    async def _acquire(self, options: BrowserOptions) -> None:
        self._lease = await pool().acquire(options)
        if self._unwanted:
            self._release()

    def take(self) -> Lease:
        """Wait for the share and return it; the caller owns it from then on."""
        wait_for(self._coming)
        lease, self._lease = self._lease, None
        assert lease is not None
        return lease

    def give_back(self) -> None:
        """Release the share, now or when it arrives, unless `take` returned it. Does not wait."""
        self._coming.cancel()
        soon(self._not_wanted)

    def _not_wanted(self) -> None:
        self._unwanted = True
        self._release()

    def _release(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            pool().release(lease)

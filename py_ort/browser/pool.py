"""Browsers in use: sessions with equal options share one browser and its worker."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.browser_shares import Browser, Lease
from py_ort.browser.captured import Captured
from py_ort.browser.launchers import with_playwright
from py_ort.browser.loop import at_exit
from py_ort.browser.page import Page
from py_ort.browser.starting import Starter, ending
from py_ort.exceptions import ConnectionLost, PyOrtError, Timeout, WorkerEnded
from py_ort.schema.gen.Ping import PingT

__all__ = ["Browser", "Lease", "Pool", "pool"]

_log = logging.getLogger("py_ort.browser")
#: Seconds for a browser's page to start or end a worker; the page has no other work.
_PAGE_PATIENCE = 10.0
#: Seconds between pings of the browser's page while requests wait for its workers, and seconds for its answer. The
#: page has no other work.
HEARTBEAT, SILENCE = 15.0, 45.0
#: Seconds for a browser to answer a ping before it receives a new session.
_ANSWER = 5.0
#: A worker that replaces another numbers its GPU buffers from the next multiple of this.
_BUFFER_NUMBERS = 1 << 20
#: Scripts of workers, and the page that is loaded in a frame instead, by `Lease.in_page`.
_SCRIPTS = {False: "worker.js", True: "index.html"}


class Pool:
    """All browsers of this process. Lives in the loop's thread."""

    def __init__(self) -> None:
        self._starter = Starter()
        #: Browsers for new sessions.
        self._browsers: dict[BrowserOptions, Browser] = {}
        #: Browsers with sessions that accept no more.
        self._retired: set[Browser] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: dict[BrowserOptions, asyncio.Lock] = {}

    # --- having

    async def prepare(self, options: BrowserOptions) -> None:
        """Start the servers and the driver for a browser ahead of time.

        Raises:
            PyOrtError: They cannot be started; `acquire` raises the same.
        """
        await self._starter.prepare(options)

    async def captured(self, options: BrowserOptions) -> Captured:
        """Return the captured browsers at the address that the options name.

        Raises:
            BrowserError: Nothing can be served at that address.
        """
        return await self._starter.captured(options)

    async def lend(self, options: BrowserOptions) -> str:
        """Lend captured browsers to other processes; return the address for their variable `LENDER`."""
        return await self._starter.lend(options)

    async def acquire(self, options: BrowserOptions) -> Lease:
        """Return a worker of a browser with these options, started if there is none.

        Raises:
            BrowserError: The browser cannot be started, or its page did not answer in time.
        """
        key = replace(options.settled(), launch_timeout=0, idle_timeout=0, pages=1)
        async with self._locks.setdefault(key, asyncio.Lock()):
            browser = self._browsers.get(key)
            if browser is None or not await self._is_there(browser):
                browser = await self._launch(key, options)
            if browser.idle:
                browser.idle.cancel()
                browser.idle = None
            lease = await self._least_used(browser, options)
            lease.users += 1
            return lease

    async def _is_there(self, browser: Browser) -> bool:
        """Return True if a browser serves new sessions; its death may not have been noticed yet."""
        try:
            async with asyncio.timeout(_ANSWER):
                await asyncio.gather(browser.launcher.check(), browser.host.request(PingT()))
        except TimeoutError:
            if browser.idle:  # otherwise `_listen` handles it
                self._forget(browser, None)
        except PyOrtError as e:
            _log.info("the browser is gone: starting another one (%s: %s)", type(e).__name__, e)
            self._forget(browser, e)
        return self._browsers.get(browser.key) is browser

    async def _launch(self, key: BrowserOptions, options: BrowserOptions) -> Browser:
        launcher, host, worker = await self._starter.browser(options)
        browser = Browser(key, options, self._starter.http, launcher, host)
        self._add_lease(browser, worker)
        launcher.connected = True
        _log.info("%s by %s: %s", launcher.description, launcher.name, host.hello.userAgent)
        self._browsers[key] = browser
        self._watch_host(browser)
        self._of(browser, self._listen(browser))
        return browser

    async def _least_used(self, browser: Browser, options: BrowserOptions) -> Lease:
        """Return the worker of a browser with the fewest sessions: a new one if all are in use and more are allowed."""
        leases = [lease for lease in browser.leases if not lease.in_page][: options.pages]
        if len(leases) < options.pages and all(lease.users for lease in leases):
            return await self._open_lease(browser)
        return min(leases, key=lambda lease: lease.users)

    async def in_page(self, lease: Lease) -> Lease:
        """Return a share of the runtime in the page's own thread of the lease's browser, started if there is none.

        Raises:
            BrowserError: It cannot be had, or did not answer in time.
        """
        browser = lease.browser
        async with self._locks[browser.key]:
            found = next((one for one in browser.leases if one.in_page), None)
            return self.share(found or await self._open_lease(browser, in_page=True))

    async def _open_lease(self, browser: Browser, *, in_page: bool = False) -> Lease:
        timeout = browser.options.launch_timeout
        return self._add_lease(browser, await self._starter.worker(browser.host, _SCRIPTS[in_page], timeout), in_page)

    def _add_lease(self, browser: Browser, worker: Page, in_page: bool = False) -> Lease:
        lease = Lease(browser, worker, in_page)
        browser.leases.append(lease)
        self._watch(lease)
        return lease

    def share(self, lease: Lease) -> Lease:
        """Return another share of a worker."""
        lease.users += 1
        return lease

    async def live(self, lease: Lease) -> Page:
        """Return the lease's worker; if it is being replaced, wait for the next worker.

        Raises:
            BrowserError: The worker is lost.
        """
        while isinstance(lease.page.lost, WorkerEnded) and lease.renewing and not lease.renewing.done():
            await asyncio.wait([lease.renewing])
        lost = lease.page.lost
        if isinstance(lost, WorkerEnded):
            lost = ConnectionLost("the browser was closed before it had another worker")
        if lost:
            raise lost.again()
        return lease.page

    async def open_worker(self, lease: Lease, script: str, timeout: float) -> Page:
        """Start another worker in a browser's page; return the connection to it.

        Args:
            lease: The browser.
            script: The worker's URL, seen from the browser's page; remote browsers use other URLs for our server.
            timeout: Seconds to wait for its hello.
        """
        return await self._starter.worker(lease.host, script, timeout)

    # --- releasing

    def release(self, lease: Lease) -> None:
        """Release a share; the last release closes the browser after its idle time."""
        lease.users -= 1
        browser = lease.browser
        if any(one.users for one in browser.leases):
            return
        if browser in self._retired:
            self._close(browser)
        elif self._browsers.get(browser.key) is browser:
            browser.idle = asyncio.get_running_loop().call_later(browser.options.idle_timeout, self._close, browser)

    def retire(self, lease: Lease) -> None:
        """Accept no more sessions in this browser. It serves the holders of shares until they release them."""
        browser = lease.browser
        if self._browsers.get(browser.key) is browser:
            del self._browsers[browser.key]
            self._retired.add(browser)

    async def close(self) -> None:
        """Close all browsers, the servers and Playwright; no more browsers are started."""
        self._starter.closed = True
        for browser in (*self._browsers.values(), *self._retired):
            self._close(browser)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._starter.close()

    def _close(self, browser: Browser) -> None:
        """Close a browser in the background. New sessions no longer use it."""
        if self._withdraw(browser):
            self._background(self._shut(browser))

    async def _shut(self, browser: Browser) -> None:
        for page in (*(lease.page for lease in browser.leases), browser.host):
            await page.close()
        await self._starter.end(browser.launcher)

    def _withdraw(self, browser: Browser) -> bool:
        """Remove a browser from the pool; return True if it was there."""
        served = self._serves(browser)
        if self._browsers.get(browser.key) is browser:
            del self._browsers[browser.key]
        self._retired.discard(browser)
        for task in browser.tasks - {asyncio.current_task()}:
            task.cancel()
        return served

    def _serves(self, browser: Browser) -> bool:
        return browser in self._retired or self._browsers.get(browser.key) is browser

    def _background(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _of(self, browser: Browser, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a background task that is cancelled with the browser."""
        task = self._background(coroutine)
        browser.tasks.add(task)
        task.add_done_callback(browser.tasks.discard)
        return task

    # --- losing

    def _watch_host(self, browser: Browser) -> None:
        host = browser.host
        host.on_lost = lambda: self._forget(browser, host.lost) if browser.host is host else None

    def _watch(self, lease: Lease) -> None:
        page = lease.page
        page.on_lost = lambda: self._worker_lost(lease) if lease.page is page else None
        page.on_useless = lambda why, alone: self._renew(lease, why, alone) if lease.page is page else None

    async def _listen(self, browser: Browser) -> None:
        """Check that the page and its workers are alive while requests wait for them."""
        while self._serves(browser):
            await asyncio.sleep(HEARTBEAT)
            host = browser.host
            busy = [lease.page for lease in browser.leases if lease.page.busy]
            if host.lost or not busy:
                continue
            for page in busy:
                page.look_after()
            try:
                await host.request(PingT(), timeout=SILENCE)
            except Timeout:
                host.end(ConnectionLost(f"the page has said nothing for {SILENCE:g} s"))
            except PyOrtError:
                pass  # the page is lost, and its requests have failed

    def _worker_lost(self, lease: Lease) -> None:
        """Remove a lost worker with its sessions; the browser stays if it has other workers."""
        browser, error = lease.browser, lease.page.lost
        if isinstance(error, WorkerEnded):
            return
        if lease in browser.leases:
            browser.leases.remove(lease)
        if browser.leases:
            browser.host.post(ending(lease.page.token))
        else:
            self._forget(browser, error)

    def _forget(self, browser: Browser, error: PyOrtError | None) -> None:
        """Remove a browser whose page is lost, with all its workers."""
        if self._withdraw(browser):
            for lease in list(browser.leases):
                lease.page.give_up((error or ConnectionLost("the browser is gone")).again())
            self._background(self._end(browser))

    async def _end(self, browser: Browser) -> None:
        await browser.host.close()
        await self._starter.end(browser.launcher)

    # --- replacing workers and browsers that hang or are broken

    def _renew(self, lease: Lease, why: str, alone: bool) -> None:
        """Replace a worker that can no longer be used.

        Args:
            lease: The worker.
            why: The reason.
            alone: True if it is enough to end the worker; False to end the browser, and its GPU process with it.
        """
        browser = lease.browser
        if not self._serves(browser):
            return
        if alone:
            self._start_renewal([lease], self._new_worker(lease), f"{why}: the worker was ended")
        else:
            self._start_renewal(browser.leases, self._new_browser(browser), f"{why}: the browser was replaced")

    def _start_renewal(self, leases: list[Lease], renewal: Coroutine[Any, Any, None], why: str) -> None:
        lost = "values on its GPU and captured graphs are lost"
        _log.warning("%s; %s. Its sessions are loaded again when they are used next", why, lost)
        task = self._of(leases[0].browser, renewal)
        for lease in leases:
            lease.renewing = task
            lease.page.end(WorkerEnded(f"{why}; {lost}. Sessions go on by themselves: make the values anew"))

    async def _new_worker(self, lease: Lease) -> None:
        browser = lease.browser
        try:
            await browser.host.request(ending(lease.page.token), timeout=_PAGE_PATIENCE)
            await self._fill(lease, _PAGE_PATIENCE)
        except PyOrtError as e:
            if self._serves(browser):
                why = f"the browser was replaced, because it had no new worker: {e.message}"
                self._start_renewal(browser.leases, self._new_browser(browser), why)

    async def _new_browser(self, browser: Browser) -> None:
        """Start the browser again, and put its new workers into the existing leases."""
        browser.host.on_lost = lambda: None
        browser.leases = [lease for lease in browser.leases if lease.users] or browser.leases[:1]
        old = replace(browser)
        self._background(self._end(old))
        try:
            first = next((lease for lease in browser.leases if not lease.in_page), None)
            others = [lease for lease in browser.leases if lease is not first]
            buffers = _first_buffer(first) if first else 1
            browser.launcher, browser.host, worker = await self._starter.browser(browser.options, buffers)
            self._watch_host(browser)
            if first:
                self._put(first, worker)
            else:
                self._add_lease(browser, worker)
            for lease in others:
                await self._fill(lease, browser.options.launch_timeout)
            browser.launcher.connected = True
        except PyOrtError as e:
            self._forget(browser, e)

    async def _fill(self, lease: Lease, timeout: float) -> None:
        """Start another worker for a lease."""
        script = f"{_SCRIPTS[lease.in_page]}?buffers={_first_buffer(lease)}"
        self._put(lease, await self._starter.worker(lease.host, script, timeout))

    def _put(self, lease: Lease, worker: Page) -> None:
        """Set the worker of a lease."""
        lease.page = worker
        lease.workers += 1
        self._watch(lease)


def _first_buffer(lease: Lease) -> int:
    """Return the number of the first GPU buffer of a lease's next worker."""
    return lease.workers * _BUFFER_NUMBERS + 1


_pool: Pool | None = None


def pool() -> Pool:
    """Return this process's pool; call it in the loop's thread."""
    global _pool
    if _pool is None:
        _pool = Pool()
        at_exit(_pool.close)
    return _pool


def _forget_pool() -> None:
    """In a forked child: browsers, servers and the driver stayed with the parent."""
    global _pool
    _pool = None
    with_playwright.forget_driver()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)

"""Browsers in use: sessions with equal options share one browser and its page."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from py_ort.browser import sandbox
from py_ort.browser.bridge import Bridge
from py_ort.browser.http_server import HttpServer, check_assets
from py_ort.browser.launchers import Launcher, launcher_for, with_playwright
from py_ort.browser.loop import at_exit
from py_ort.browser.options import BrowserOptions
from py_ort.browser.page import Page
from py_ort.exceptions import BrowserCrashed, ConnectionLost, PyOrtError, Timeout
from py_ort.schema.gen.OpenWorker import OpenWorkerT

_log = logging.getLogger("py_ort.browser")


@dataclass(eq=False)
class Lease:
    """A session's share of a browser's page. Give it back with `release`.

    Attributes:
        first: The lease of the browser's first page; None for that itself.
        others: Of the first one: those of the browser's other pages.
        had_adapter: Of the first one: whether WebGPU had an adapter in this browser.
    """

    key: BrowserOptions
    launcher: Launcher
    page: Page
    http: HttpServer
    users: int = 0
    idle: asyncio.TimerHandle | None = None
    first: Lease | None = None
    others: list[Lease] = field(default_factory=list)
    had_adapter: bool = False

    @property
    def browser(self) -> Lease:
        """The lease of the browser's first page."""
        return self.first or self

    def all(self) -> list[Lease]:
        """Return the leases of all pages of this browser."""
        return [self.browser, *self.browser.others]


class Pool:
    """All browsers of this process. Lives in the loop's thread."""

    def __init__(self) -> None:
        self._bridge: Bridge | None = None
        #: The browsers that new sessions come to.
        self._leases: dict[BrowserOptions, Lease] = {}
        #: Those that take no more, but have some.
        self._retired: set[Lease] = set()
        #: Of all browsers that were started and not closed yet.
        self._launchers: set[Launcher] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self._locks: dict[BrowserOptions, asyncio.Lock] = {}

    async def acquire(self, options: BrowserOptions) -> Lease:
        """Return a browser with these options, started if there is none.

        Raises:
            BrowserError: It cannot be had, or its page did not answer in time.
        """
        key = replace(options.settled(), launch_timeout=0, idle_timeout=0, pages=1)
        async with self._locks.setdefault(key, asyncio.Lock()):
            lease = self._leases.get(key)
            if lease is None:
                lease = await self._launch(key, options)
            if lease.idle:
                lease.idle.cancel()
                lease.idle = None
            lease = await self._least_used(lease, options)
            lease.users += 1
            return lease

    async def _least_used(self, first: Lease, options: BrowserOptions) -> Lease:
        """Return the page of a browser with the fewest sessions: a new one if all are in use and more are allowed."""
        leases = first.all()[: options.pages]
        if len(leases) < options.pages and all(lease.users for lease in leases):
            page = await self.open_worker(first, "worker.js", options.launch_timeout)
            made = Lease(first.key, first.launcher, page, first.http, first=first)
            page.on_lost = lambda: first.others.remove(made) if made in first.others else None
            first.others.append(made)
            leases.append(made)
        return min(leases, key=lambda lease: lease.users)

    def share(self, lease: Lease) -> Lease:
        """Take another share of a browser that somebody holds."""
        lease.users += 1
        return lease

    def release(self, lease: Lease) -> None:
        """Give a share back; the last one closes the browser after its idle time."""
        lease.users -= 1
        first = lease.browser
        if any(one.users for one in first.all()):
            return
        if first in self._retired:
            self._background(self._close(first))
        elif self._leases.get(first.key) is first:
            first.idle = asyncio.get_running_loop().call_later(
                first.launcher.options.idle_timeout, lambda: self._background(self._close(first))
            )

    def retire(self, lease: Lease) -> None:
        """Let no more sessions come to this browser. It serves those who have shares until they are done."""
        first = lease.browser
        if self._leases.get(first.key) is first:
            del self._leases[first.key]
            self._retired.add(first)

    async def open_worker(self, lease: Lease, script: str, timeout: float) -> Page:
        """Start another worker in a browser's page; return the connection to it.

        Args:
            lease: The browser.
            script: The worker's URL on our HTTP server.
            timeout: Seconds to wait for its hello.
        """
        assert self._bridge is not None
        port, token, connected = self._bridge.expect_worker()
        body = OpenWorkerT()
        body.script, body.port, body.token = script, port, token
        try:
            async with asyncio.timeout(timeout):
                await lease.page.request(body)
                return await asyncio.shield(connected)
        except TimeoutError:
            wanting = self._bridge.waits_for(connected)
            raise Timeout(f"{script} is not there after {timeout:g} s: still waiting for {wanting}") from None
        finally:
            connected.cancel()

    async def close(self) -> None:
        """Close all browsers, the servers and Playwright."""
        await asyncio.gather(*(self._close(lease) for lease in (*self._leases.values(), *self._retired)))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Those that were just being started.
        await asyncio.gather(*(self._end(launcher) for launcher in list(self._launchers)))
        await with_playwright.stop_driver()
        if self._bridge:
            await self._bridge.close()
            self._bridge = None

    async def _launch(self, key: BrowserOptions, options: BrowserOptions) -> Lease:
        """Start a browser; once more without its sandbox, where the system turns out to forbid that."""
        check_assets()
        try:
            return await self._try_launch(key, options)
        except BrowserCrashed as e:
            if options.sandbox:
                e.message += sandbox.hint(e)
            if options.sandbox is not None or not sandbox.refused(options.browser, e):
                raise
            return await self._try_launch(key, options)

    async def _try_launch(self, key: BrowserOptions, options: BrowserOptions) -> Lease:
        if self._bridge is None:
            self._bridge = await Bridge.start()
        url, connected = self._bridge.expect()
        page: Page | None = None

        def on_lost(error: PyOrtError) -> None:
            if page is not None:
                page.lose(error)
            elif not connected.done():
                connected.set_exception(error)

        launcher = launcher_for(options)(options, on_lost)
        self._launchers.add(launcher)
        started = False
        try:
            async with asyncio.timeout(options.launch_timeout):
                await launcher.start(url)
                started = True
                # Shielded: who is late is asked what it waits for.
                page = await asyncio.shield(connected)
        except TimeoutError:
            wanting = self._bridge.waits_for(connected) if started else "its process to start"
            await self._end(launcher)
            raise Timeout(
                f"{launcher.description} did not open its page within {options.launch_timeout:g} s: still waiting for "
                f"{wanting} (BrowserOptions(launch_timeout=…) allows more)"
            ) from None
        except BaseException:
            await self._end(launcher)
            raise
        finally:
            connected.cancel()
        launcher.connected = True
        hello = page.hello
        _log.info("%s by %s: %s", launcher.description, launcher.name, hello.userAgent)
        lease = self._leases[key] = Lease(key, launcher, page, self._bridge.http)
        page.on_lost = lambda: self._forget(lease)
        return lease

    def _background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self, lease: Lease) -> None:
        """After its page is gone, a browser serves nobody."""
        if self._withdraw(lease):
            for other in list(lease.others):
                other.page.lose(lease.page.lost or ConnectionLost("the browser is gone"))
            self._background(self._end(lease.launcher))

    async def _close(self, lease: Lease) -> None:
        if self._withdraw(lease):
            for one in lease.all():
                await one.page.close()
            await self._end(lease.launcher)

    def _withdraw(self, lease: Lease) -> bool:
        """Have a browser serve nobody any more; return whether it did."""
        served = lease in self._retired or self._leases.get(lease.key) is lease
        if self._leases.get(lease.key) is lease:
            del self._leases[lease.key]
        self._retired.discard(lease)
        return served

    async def _end(self, launcher: Launcher) -> None:
        await launcher.close()
        self._launchers.discard(launcher)


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

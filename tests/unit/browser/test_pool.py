"""The assignment of browsers, without browsers: a stand-in starts them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.pool import Lease, Pool
from py_ort.exceptions import BrowserError


class _Page:
    """A page or worker that exists until it is closed."""

    hello = SimpleNamespace(userAgent="none")
    busy = False

    def __init__(self) -> None:
        self.lost: BrowserError | None = None
        self.token = ""

    async def request(self, body: Any) -> None:
        """Answer at once."""

    def end(self, error: BrowserError) -> None:
        self.lost = error

    async def close(self) -> None:
        self.lost = BrowserError("the browser was closed")


async def _there() -> None:
    """The browser's process is alive."""


class _Starter:
    http = None

    def __init__(self) -> None:
        self.scripts: list[str] = []

    async def browser(self, options: BrowserOptions, buffers: int = 1) -> tuple[Any, _Page, _Page]:
        return SimpleNamespace(description="none", name="none", check=_there), _Page(), _Page()

    async def worker(self, host: _Page, script: str, timeout: float) -> _Page:
        self.scripts.append(script)
        return _Page()

    async def end(self, launcher: Any) -> None:
        pass


def test_wanted_again_as_its_idle_time_ends() -> None:
    """A user who comes then has a browser that stays, not the one that is being closed."""

    async def again() -> Lease:
        pool, options = Pool(), BrowserOptions(idle_timeout=0)
        pool._starter = _Starter()  # type: ignore[assignment]
        loop = asyncio.get_running_loop()
        pool.release(await pool.acquire(options))
        tasks: list[asyncio.Task[Lease]] = []
        # The task is made before the end of the idle time, and begins after it.
        loop.call_soon(lambda: tasks.append(loop.create_task(pool.acquire(options))))
        await asyncio.sleep(0.05)
        lease = await tasks[0]
        await pool.live(lease)
        for task in lease.browser.tasks:
            task.cancel()
        return lease

    assert asyncio.run(again()).page.lost is None


def test_a_runtime_in_the_pages_own_thread() -> None:
    """Sessions that need it share it, others get workers; both kinds come back with a new browser."""

    async def both() -> list[str]:
        pool, options = Pool(), BrowserOptions(pages=2)
        pool._starter = starter = _Starter()  # type: ignore[assignment]
        worker = await pool.acquire(options)
        frame = await pool.in_page(worker)
        assert frame.in_page and await pool.in_page(worker) is frame and frame.users == 2
        assert starter.scripts == ["index.html"]
        other = await pool.acquire(options)
        assert other not in (worker, frame) and not other.in_page
        pool.release(worker)
        pool._renew(frame, "it hangs", alone=False)
        pages = {await pool.live(lease) for lease in (other, frame)}
        for task in frame.browser.tasks:
            task.cancel()
        assert len(pages) == 2 and worker not in frame.browser.leases
        return starter.scripts

    assert asyncio.run(both()) == ["index.html", "worker.js", "index.html?buffers=1048577"]

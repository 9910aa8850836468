"""Who gets which browser, without any: what starts them is a stand-in."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from py_ort.browser.options import BrowserOptions
from py_ort.browser.pool import Lease, Pool
from py_ort.exceptions import BrowserError


class _Page:
    """A page or worker that is there until it is closed."""

    hello = SimpleNamespace(userAgent="none")
    busy = False

    def __init__(self) -> None:
        self.lost: BrowserError | None = None

    async def close(self) -> None:
        self.lost = BrowserError("the browser was closed")


class _Starter:
    http = None

    async def browser(self, options: BrowserOptions) -> tuple[Any, _Page, _Page]:
        return SimpleNamespace(description="none", name="none"), _Page(), _Page()

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
        # The task is made before the idle time's end is told, and begins after it.
        loop.call_soon(lambda: tasks.append(loop.create_task(pool.acquire(options))))
        await asyncio.sleep(0.05)
        lease = await tasks[0]
        await pool.live(lease)
        for task in lease.browser.tasks:
            task.cancel()
        return lease

    assert asyncio.run(again()).page.lost is None

"""Running browsers, and the shares that sessions have in them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.http_server import HttpServer
from py_ort.browser.launchers.launcher import Launcher
from py_ort.browser.page import Page


@dataclass(eq=False)
class Browser:
    """A running browser.

    Attributes:
        key: Sessions whose options have the same key share the browser.
        options: The options that it was started with.
        http: The server that it fetches files from.
        launcher: The launcher that started it.
        host: The browser's page, which starts and ends workers.
        leases: Its workers.
        had_devices: The providers that had a device in it, and whether in its page's own thread.
        idle: While it has no sessions.
        tasks: Which watch it, or replace something of it.
    """

    key: BrowserOptions
    options: BrowserOptions
    http: HttpServer
    launcher: Launcher
    host: Page
    leases: list[Lease] = field(default_factory=list)
    had_devices: set[tuple[str, bool]] = field(default_factory=set)
    idle: asyncio.TimerHandle | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


@dataclass(eq=False)
class Lease:
    """A share of a browser's worker. `Pool.release` returns it.

    Attributes:
        page: The worker; another one after it had to be ended (see `Pool.live`).
        in_page: True if the runtime is in a frame of the page instead, whose thread is the page's own: some browsers
            have WebGL only there.
        users: How many hold a share.
        renewing: While another worker takes the place of this one.
        workers: How many there have been.
    """

    browser: Browser
    page: Page
    in_page: bool = False
    users: int = 0
    renewing: asyncio.Task[None] | None = None
    workers: int = 1

    @property
    def launcher(self) -> Launcher:
        """The launcher that started the browser."""
        return self.browser.launcher

    @property
    def host(self) -> Page:
        """The browser's page, which starts and ends workers."""
        return self.browser.host

    @property
    def http(self) -> HttpServer:
        """The server that the browser fetches files from."""
        return self.browser.http

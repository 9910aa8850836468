"""Starting and ending browsers, and workers in them."""

from __future__ import annotations

import asyncio

from py_ort.browser import sandbox
from py_ort.browser.bridge import Bridge
from py_ort.browser.http_server import HttpServer, check_assets
from py_ort.browser.launchers import launcher_for, with_playwright
from py_ort.browser.launchers.launcher import Launcher
from py_ort.browser.options import BrowserOptions
from py_ort.browser.page import Page
from py_ort.exceptions import PyOrtError, Timeout
from py_ort.schema.gen.EndWorker import EndWorkerT
from py_ort.schema.gen.OpenWorker import OpenWorkerT


class Starter:
    """Starts browsers and workers. Lives in the loop's thread."""

    def __init__(self) -> None:
        self._bridge: Bridge | None = None
        self._opening = asyncio.Lock()
        #: Of all browsers that were started and not closed yet.
        self._launchers: set[Launcher] = set()

    @property
    def http(self) -> HttpServer:
        """What all browsers fetch from; once there is one."""
        assert self._bridge is not None
        return self._bridge.http

    async def browser(self, options: BrowserOptions) -> tuple[Launcher, Page]:
        """Start a browser and open our page in it; once more without its sandbox, where the system forbids that.

        Raises:
            BrowserError: It cannot be had, or its page did not answer in time.
        """
        check_assets()
        async with self._opening:  # of browsers that start at the same time one makes it
            bridge = self._bridge = self._bridge or await Bridge.start()
        return await sandbox.once_more_without(options, lambda: self._try_to_start(bridge, options))

    async def _try_to_start(self, bridge: Bridge, options: BrowserOptions) -> tuple[Launcher, Page]:
        gateway = await bridge.gateway(options) if options.host else None
        url, connected = bridge.expect()
        if gateway:
            url = gateway.url(url)
        host: Page | None = None

        def on_lost(error: PyOrtError) -> None:
            if host is not None:
                host.lose(error)
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
                host = await asyncio.shield(connected)
        except TimeoutError:
            wanting = bridge.waits_for(connected) if started else "its process to start"
            await self.end(launcher)
            raise Timeout(
                f"{launcher.description} did not open its page within {options.launch_timeout:g} s: still waiting for "
                f"{wanting} (BrowserOptions(launch_timeout=…) allows more)"
            ) from None
        except BaseException:
            await self.end(launcher)
            raise
        finally:
            connected.cancel()
        return launcher, host

    async def worker(self, host: Page, script: str, timeout: float) -> Page:
        """Start a worker; return the connection to it.

        Args:
            host: The browser's page.
            script: The worker's URL, seen from that page.
            timeout: Seconds to wait for its hello.
        """
        assert self._bridge is not None
        port, token, connected = self._bridge.expect_worker()
        body = OpenWorkerT()
        body.script, body.port, body.token = script, port, token
        try:
            async with asyncio.timeout(timeout):
                await host.request(body)
                return await asyncio.shield(connected)
        except TimeoutError:
            wanting = self._bridge.waits_for(connected)
            host.post(ending(token))
            raise Timeout(f"{script} is not there after {timeout:g} s: still waiting for {wanting}") from None
        finally:
            connected.cancel()

    async def end(self, launcher: Launcher) -> None:
        """End a browser."""
        await launcher.close()
        self._launchers.discard(launcher)

    async def close(self) -> None:
        """End all browsers, those in the middle of starting too, the servers and Playwright."""
        await asyncio.gather(*(self.end(launcher) for launcher in list(self._launchers)))
        await with_playwright.stop_driver()
        if self._bridge:
            await self._bridge.close()
            self._bridge = None


def ending(token: str) -> EndWorkerT:
    """The request to a browser's page to end the worker that connected with a token."""
    body = EndWorkerT()
    body.token = token
    return body

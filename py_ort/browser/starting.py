"""Starting and ending browsers, and workers in them."""

from __future__ import annotations

import asyncio
import os

from py_ort.browser import sandbox
from py_ort.browser.borrowed import LENDER, Borrowed
from py_ort.browser.bridge import Bridge
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.captured import Captured
from py_ort.browser.http_server import HttpServer, check_assets
from py_ort.browser.launchers import launcher_for, with_playwright
from py_ort.browser.launchers.capture import CaptureLauncher
from py_ort.browser.launchers.launcher import Launcher
from py_ort.browser.page import Page
from py_ort.exceptions import ConnectionLost, PyOrtError, Timeout
from py_ort.schema.gen.EndWorker import EndWorkerT
from py_ort.schema.gen.OpenWorker import OpenWorkerT


class Starter:
    """Starts browsers and workers. Lives in the loop's thread."""

    def __init__(self) -> None:
        self._bridge: Bridge | None = None
        self._opening = asyncio.Lock()
        #: Launchers of all browsers that are not closed yet.
        self._launchers: set[Launcher] = set()
        #: Set when this process ends.
        self.closed = False

    @property
    def http(self) -> HttpServer:
        """The server that all browsers fetch files from; it exists once a browser was started."""
        assert self._bridge is not None
        return self._bridge.http

    async def browser(self, options: BrowserOptions, buffers: int = 1) -> tuple[Launcher, Page, Page]:
        """Start a browser; again without its sandbox if the system forbids one.

        Args:
            options: Options of the browser.
            buffers: Number of its worker's first GPU buffer.

        Returns:
            The launcher, the browser's page, and the worker that the page starts by itself.

        Raises:
            BrowserError: The browser cannot be started, or its page or worker did not answer in time.
        """
        bridge = await self._servers()
        return await sandbox.once_more_without(
            options.browser, options.sandbox, lambda: self._try_to_start(bridge, options, buffers)
        )

    async def prepare(self, options: BrowserOptions) -> None:
        """Start the servers and the driver that `browser` needs, at the same time, each only once.

        Raises:
            PyOrtError: They cannot be started.
        """
        bridge = await self._servers()
        # The driver first: it starts a process.
        await asyncio.gather(launcher_for(options).prepare(), *([bridge.gateway(options)] if options.host else ()))

    async def captured(self, options: BrowserOptions) -> Captured:
        """Return the captured browsers at the address that the options name.

        Raises:
            BrowserError: Nothing can be served at that address.
        """
        return await (await self._servers()).captured(options)

    async def lend(self, options: BrowserOptions) -> str:
        """Lend the captured browsers to other processes; return the address for their variable `LENDER`."""
        return await (await self._servers()).lend(options)

    async def _servers(self) -> Bridge:
        check_assets()
        async with self._opening:  # browsers that start at the same time share it
            self._bridge = self._bridge or await Bridge.start()
        return self._bridge

    async def _try_to_start(self, bridge: Bridge, options: BrowserOptions, buffers: int) -> tuple[Launcher, Page, Page]:
        gateway = await bridge.gateway(options) if options.host else None
        url, connected, working = bridge.expect(buffers)
        if gateway:
            url = gateway.url(url)
        host: Page | None = None

        def on_lost(error: PyOrtError) -> None:
            for waiting in (connected, working):
                if not waiting.done():
                    waiting.set_exception(error.again())
            if host is not None:
                host.lose(error)

        # No one may be waiting for it when the browser is lost.
        working.add_done_callback(lambda future: future.cancelled() or future.exception())
        if self.closed:  # other threads are still running
            raise ConnectionLost("this process ends, and has closed its browsers: no other one is started")
        launcher = launcher_for(options)(options, on_lost)
        if isinstance(launcher, CaptureLauncher):
            lender = os.environ.get(LENDER, "") if not options.host else ""
            launcher.captured = Borrowed(lender) if lender else await bridge.captured(options)
        self._launchers.add(launcher)
        started = False
        try:
            await launcher.reach(url)
            async with asyncio.timeout(options.launch_timeout):
                await launcher.start(url)
                started = True
                # Shielded: `waits_for` still asks for this future after a timeout.
                host = await asyncio.shield(connected)
            launcher.met(str(host.hello.userAgent))
            return launcher, host, await self._first_worker(working, options.launch_timeout)
        except Timeout:
            await self.end(launcher)
            raise
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
            working.cancel()

    async def _first_worker(self, connected: asyncio.Future[Page], timeout: float) -> Page:
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(connected)
        except TimeoutError:
            raise self._late("worker.js", connected, timeout) from None

    async def worker(self, host: Page, script: str, timeout: float) -> Page:
        """Start another worker; return the connection to it.

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
            late = self._late(script, connected, timeout)
            host.post(ending(token))
            raise late from None
        finally:
            connected.cancel()

    def _late(self, script: str, connected: asyncio.Future[Page], timeout: float) -> Timeout:
        assert self._bridge is not None
        wanting = self._bridge.waits_for(connected)
        return Timeout(f"{script} is not there after {timeout:g} s: still waiting for {wanting}")

    async def end(self, launcher: Launcher) -> None:
        """End a browser."""
        await launcher.close()
        self._launchers.discard(launcher)

    async def close(self) -> None:
        """End all browsers, also those that are still starting, the servers and Playwright."""
        await asyncio.gather(*(self.end(launcher) for launcher in list(self._launchers)))
        await with_playwright.stop_driver()
        if self._bridge:
            await self._bridge.close()
            self._bridge = None


def ending(token: str) -> EndWorkerT:
    """Return the request to a browser's page to end the worker that connected with this token."""
    body = EndWorkerT()
    body.token = token
    return body

"""The base class of launchers."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from py_ort.exceptions import PyOrtError

if TYPE_CHECKING:
    from py_ort.browser.browser_options import BrowserOptions


class Launcher:
    """Starts (or reaches) one browser and opens one page in it.

    Attributes:
        name: Name of the launcher for messages and `placement()`.
        replaceable: True if another launch starts another browser.
        description: The browser and its version, once started.
        system: The browser's system, as "Linux x86_64"; "" if unknown.
    """

    name: ClassVar[str] = ""
    replaceable: ClassVar[bool] = True

    def __init__(self, options: BrowserOptions, on_lost: Callable[[PyOrtError], None]) -> None:
        self.options = options
        #: Subclasses call it with BrowserCrashed or PageCrashed when the browser or its page ends by itself.
        self.on_lost = on_lost
        self.description = options.name
        self.system = f"{platform.system()} {platform.machine()}" if self.replaceable else ""
        #: True once the browser's page has said hello.
        self.connected = False

    @classmethod
    def load(cls) -> None:
        """Import the library that drives browsers of this launcher, if any."""

    @classmethod
    async def prepare(cls) -> None:
        """Start the process that drives browsers of this launcher, once for all browsers."""

    async def reach(self, url: str) -> None:
        """Wait for a browser that people open; `launch_timeout` begins after this.

        Raises:
            Timeout: There is no browser.
        """

    async def start(self, url: str) -> None:
        """Start the browser and open the URL.

        Raises:
            BrowserNotFound: There is no such browser.
            BrowserCrashed: The browser did not start.
        """
        raise NotImplementedError

    async def check(self) -> None:
        """Check that the browser's process lives, if that is possible.

        Raises:
            BrowserCrashed: The process has ended.
        """

    def met(self, user_agent: str) -> None:
        """Learn the browser's name from its user agent, once its page has said hello."""

    async def close(self) -> None:
        """End everything that `start` began. Never raises, and starts no thread: Python may be about to end."""
        raise NotImplementedError

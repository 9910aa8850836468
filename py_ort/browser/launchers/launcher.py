"""What all launchers have in common."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from py_ort.exceptions import PyOrtError

if TYPE_CHECKING:
    from py_ort.browser.options import BrowserOptions


class Launcher:
    """Starts (or reaches) one browser and opens one page in it.

    Attributes:
        name: For messages and `placement()`.
        replaceable: Whether another launch gives another browser.
        description: The browser and its version, once started.
        system: Where it runs: "Linux x86_64"; "" if that is not known.
    """

    name: ClassVar[str] = ""
    replaceable: ClassVar[bool] = True

    def __init__(self, options: BrowserOptions, on_lost: Callable[[PyOrtError], None]) -> None:
        self.options = options
        #: To be called with BrowserCrashed or PageCrashed when the browser or its page ends by itself.
        self.on_lost = on_lost
        self.description = options.name
        self.system = f"{platform.system()} {platform.machine()}" if self.replaceable else ""
        #: Set when its page has said hello.
        self.connected = False

    @classmethod
    def load(cls) -> None:
        """Import what browsers of this launcher are driven by, if there is such."""

    @classmethod
    async def prepare(cls) -> None:
        """Start it, once for all of them."""

    async def reach(self, url: str) -> None:
        """Wait for a browser to be there, where that takes as long as others please: `launch_timeout` begins behind it.

        Raises:
            Timeout: None is there.
        """

    async def start(self, url: str) -> None:
        """Start the browser and open the URL.

        Raises:
            BrowserNotFound: There is no such browser.
            BrowserCrashed: It did not start.
        """
        raise NotImplementedError

    async def check(self) -> None:
        """See that the browser's own process is there, if that can be seen.

        Raises:
            BrowserCrashed: It is not.
        """

    def met(self, user_agent: str) -> None:
        """Learn what the browser says of itself, once its page has said hello."""

    async def close(self) -> None:
        """End what `start` began, and nothing else. Never raises, and starts no thread: Python may be about to end."""
        raise NotImplementedError

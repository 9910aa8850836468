"""Limits for strangers: connections that have not yet shown a secret of our pages (a token, the path of a blob).

Every user of this machine can connect to a port on loopback, any number of times. If there are too many strangers, the
oldest connection is closed. Our own pages show their secret within milliseconds, so open connections of others cannot
keep them out.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

#: Largest number of strangers at one time on each port. A browser opens up to 6 connections to fetch files.
MOST = 64
#: Seconds for a stranger to show a secret.
PATIENCE = 10.0


class Strangers:
    """The strangers of one port. All methods may be called in any thread.

    Attributes:
        patience: Seconds for each stranger, unless `enter` has others.
    """

    def __init__(self, most: int = MOST) -> None:
        self.patience = PATIENCE
        self._most = most
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Hashable, tuple[float, Callable[[], object]]] = OrderedDict()

    def enter(self, who: Hashable, close: Callable[[], object], seconds: float | None = None) -> None:
        """Add a connection, or start its time again; `close` is called if the connection must end."""
        with self._lock:
            self._waiting.pop(who, None)
            until = time.monotonic() + (self.patience if seconds is None else seconds)
            self._waiting[who] = (until, close)
            gone = [self._waiting.popitem(last=False)[1]] if len(self._waiting) > self._most else []
        for _, close_it in gone:
            close_it()

    def leave(self, who: Hashable) -> None:
        """Remove a connection that has shown a secret or has ended."""
        with self._lock:
            self._waiting.pop(who, None)

    def close_overdue(self) -> None:
        """Close the connections whose time is over."""
        now = time.monotonic()
        with self._lock:
            overdue = [(who, close) for who, (until, close) in self._waiting.items() if until <= now]
            for who, _ in overdue:
                del self._waiting[who]
        for _, close in overdue:
            close()

    def __len__(self) -> int:
        return len(self._waiting)

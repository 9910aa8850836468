"""Connections that have not shown yet that they are a page of ours: few at one time, and none for long.

Every user of this machine can connect to a port on loopback, as often as they like. Whoever knows a secret (a token,
the path of a blob) is a stranger no more. When there are too many strangers, the one that came first goes: our own
pages prove themselves within milliseconds, so nobody keeps them out by holding connections.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

#: How many there may be at one time, on each port. A browser opens up to 6 connections to fetch from.
MOST = 64
#: Seconds that one may take to say what it wants.
PATIENCE = 10.0


class Strangers:
    """The strangers of one port. Any thread may call it.

    Attributes:
        patience: Seconds that one has, unless `enter` says otherwise.
    """

    def __init__(self, most: int = MOST) -> None:
        self.patience = PATIENCE
        self._most = most
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Hashable, tuple[float, Callable[[], object]]] = OrderedDict()

    def enter(self, who: Hashable, close: Callable[[], object], seconds: float | None = None) -> None:
        """One came in, or its time begins again; `close` is called when it must go."""
        with self._lock:
            self._waiting.pop(who, None)
            until = time.monotonic() + (self.patience if seconds is None else seconds)
            self._waiting[who] = (until, close)
            gone = [self._waiting.popitem(last=False)[1]] if len(self._waiting) > self._most else []
        for _, close_it in gone:
            close_it()

    def leave(self, who: Hashable) -> None:
        """It is not a stranger any more, or gone."""
        with self._lock:
            self._waiting.pop(who, None)

    def close_overdue(self) -> None:
        """Have those go whose time is over."""
        now = time.monotonic()
        with self._lock:
            overdue = [(who, close) for who, (until, close) in self._waiting.items() if until <= now]
            for who, _ in overdue:
                del self._waiting[who]
        for _, close in overdue:
            close()

    def __len__(self) -> int:
        return len(self._waiting)

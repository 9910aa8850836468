"""The page's clock on Python's: an exchange of pings says how far they are apart; the quickest of nine decides."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py_ort.schema.gen.Ping import PingT

if TYPE_CHECKING:
    from py_ort.browser.page import Page

_PINGS = 9


@dataclass
class PageClock:
    """The page's `performance.now()` in seconds of `time.perf_counter()`.

    Attributes:
        offset: Python's time when the page's clock was 0.
        uncertainty: Half of the shortest round trip: the offset is not better than that.
    """

    offset: float = 0.0
    uncertainty: float = float("inf")

    def seconds(self, page_ms: float) -> float:
        """Return a time of the page on Python's clock."""
        return self.offset + page_ms / 1000

    async def align(self, page: Page) -> None:
        """Ask the page for its time; the quickest answer so far decides."""
        for _ in range(_PINGS):
            asked = time.perf_counter()
            answer = await page.request(PingT())
            heard = time.perf_counter()
            if (heard - asked) / 2 < self.uncertainty:
                self.uncertainty = (heard - asked) / 2
                self.offset = (asked + heard) / 2 - answer.body.nowMs / 1000

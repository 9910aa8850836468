"""The browsers of a fleet. Imports little, so that browsers start while Python imports the rest."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import PyOrtError

if TYPE_CHECKING:
    from py_ort.testing.results import Results


@dataclass
class Node:
    """A browser of a fleet.

    Attributes:
        name: Its name in results.
        browser: The options asked for.
        place: Results without cases, with its description; None if it never opened.
        cases: Number of cases that it ran.
        error: The reason why it gets no more; "".
        asked: The caller's name of the browser, where `browser` is another.
        call: Calls a function where its sessions are made.
    """

    name: str
    browser: BrowserOptions
    place: Results | None = None
    cases: int = 0
    error: str = ""
    asked: str = ""
    call: Callable[..., Any] = lambda function, *arguments: function(*arguments)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        found, adapter = (self.place.browser, self.place.adapter) if self.place else ("", "")
        told = {"found": found, "adapter": adapter, "cases": self.cases, "error": self.error}
        return {"browser": self.asked or self.browser.name, "name": self.name, **told}


def nodes_of(urls: Sequence[str], like: BrowserOptions) -> list[BrowserOptions]:
    """Return options of the browsers of a fleet.

    Args:
        urls: Values for `browser=`; one that comes again is another browser there.
        like: All else.
    """
    return [replace(like, browser=url, instance=number) for number, url in enumerate(urls, 1)]


def has_processes(fleet: Sequence[BrowserOptions], jobs: int) -> bool:
    """Return True if each browser of a fleet has a separate process; otherwise this process serves all.

    Args:
        fleet: The browsers.
        jobs: See `RunnerOptions`.
    """
    if any(browser.port or browser.public_url for browser in fleet):
        return False
    return jobs > 1 or (jobs == 0 and 1 < len(fleet) <= (os.cpu_count() or 1))


def prepare(fleet: Sequence[BrowserOptions], jobs: int) -> None:
    """Start the launcher of a fleet's browsers in the background, if this process opens them.

    Args:
        fleet: The browsers.
        jobs: See `RunnerOptions`.
    """
    if not has_processes(fleet, jobs):
        from py_ort.browser.launchers import launcher_for
        from py_ort.browser.loop import loop_thread

        launcher_for(fleet[0]).load()  # in this thread: beside another that imports, it would take twice as long
        loop_thread().submit(_prepare(fleet[0]))


async def _prepare(browser: BrowserOptions) -> None:
    from py_ort.browser.pool import pool

    with contextlib.suppress(PyOrtError):  # opening the browser raises the error
        await pool().prepare(browser)

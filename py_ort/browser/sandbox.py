"""The sandboxes of Chromium and WebKitGTK: on wherever possible, with one warning where they are not.

Without a sandbox, a page that breaks the browser's own checks has all rights of the user that runs Python.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from py_ort.exceptions import BrowserCrashed

T = TypeVar("T")

_log = logging.getLogger("py_ort.browser")
#: Messages of browsers that end because they get no sandbox; bubblewrap makes WebKit's sandbox.
_REFUSED = re.compile(
    r"No usable sandbox|sandboxing failed|Failed to move to new namespace|SUID sandbox helper|root without --no-sandbox"
    r"|bwrap: "
)
SYSCTL = Path("/proc/sys")
#: Linux's switches in that folder: name, value that forbids user namespaces, advice.
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "an AppArmor profile with `userns` for the browser's binary, or sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
_ALSO = ", or the browser's setuid helper (Debian: apt-get install chromium-sandbox)"
#: Reasons for no sandbox, by `BrowserOptions.browser`. Only the browser itself finds out for certain.
_refused: dict[str, str] = {}
_warned: set[str] = set()


def off(browser: str, wanted: bool | None, name: str = "Chromium", obstacle: str = "") -> bool:
    """Return True if this browser must start without its sandbox. Logs the reason once, unless the user chose so.

    Args:
        browser: `BrowserOptions.browser`.
        wanted: `BrowserOptions.sandbox`.
        name: Name of the browser for messages.
        obstacle: A reason that is known in advance.
    """
    if wanted is not None:
        return not wanted
    reason = obstacle or _refused.get(browser)
    if not reason:
        return False
    if reason not in _warned:
        _warned.add(reason)
        _log.warning(
            "%s runs without its sandbox: %s; or, where only trusted models run, BrowserOptions(sandbox=False) "
            "or PY_ORT_SANDBOX=0, which silences this, too",
            name,
            reason,
        )
    return True


def root() -> str:
    """Return the reason for no sandbox in Chromium if this user is root; otherwise ""."""
    if sys.platform == "linux" and os.geteuid() == 0:
        return "Python runs as root, and Chromium has no sandbox for root. What helps: another user"
    return ""


def refused(browser: str, error: BrowserCrashed) -> bool:
    """Return True if a browser ended because the system gives it no sandbox; later starts are without."""
    if _REFUSED.search(error.message) is None:
        return False
    _refused[browser] = f"the system refuses it one ({_cause(error)})"
    return True


def hint(error: BrowserCrashed) -> str:
    """Return advice for the error of a browser that ended because its required sandbox is refused, else ""."""
    if _REFUSED.search(error.message) is None:
        return ""
    return f". BrowserOptions(sandbox=True) was asked for, and {_cause(error)}; sandbox=None does without where it must"


def _cause(error: BrowserCrashed) -> str:
    of_webkit = "bwrap: " in error.message
    if not of_webkit and (reason := root()):
        return reason
    also = "" if of_webkit else _ALSO
    for path, forbidden, help_ in _SWITCHES:
        try:
            value = (SYSCTL / path).read_text().strip()
        except OSError:
            continue
        if value == forbidden:
            return f"{path.replace('/', '.')} is {value}. What helps: {help_}{also}"
    return (
        "user namespaces are forbidden to this process, as in most containers. What helps: a container that allows "
        f"them (a seccomp profile with clone and unshare){also}"
    )


async def once_more_without(browser: str, wanted: bool | None, start: Callable[[], Awaitable[T]]) -> T:
    """Start a browser; again without its sandbox if the system forbids one and the user does not require it.

    Args:
        browser: `BrowserOptions.browser`.
        wanted: `BrowserOptions.sandbox`.
        start: Starts the browser.

    Raises:
        BrowserError: The browser cannot be started. The text has advice if the sandbox is the cause.
    """
    try:
        return await start()
    except BrowserCrashed as e:
        if wanted:
            e.message += hint(e)
        if wanted is not None or not refused(browser, e):
            raise
        return await start()

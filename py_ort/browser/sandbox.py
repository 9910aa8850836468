"""The sandboxes of Chromium and WebKitGTK: on wherever they can be, and a warning, once, where they cannot.

Without it a page that breaks out of the browser's own checks has all rights of the user that runs Python.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from py_ort.exceptions import BrowserCrashed

if TYPE_CHECKING:
    from py_ort.browser.options import BrowserOptions

T = TypeVar("T")

_log = logging.getLogger("py_ort.browser")
#: What a browser says when it ends because it gets no sandbox; WebKit's is made by bubblewrap.
_REFUSED = re.compile(
    r"No usable sandbox|sandboxing failed|Failed to move to new namespace|SUID sandbox helper|root without --no-sandbox"
    r"|bwrap: "
)
SYSCTL = Path("/proc/sys")
#: Switches of Linux there, the value that forbids user namespaces, and what helps.
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
#: By the browser asked for: why it has to do without. Only the browser itself knows for sure.
_refused: dict[str, str] = {}
_warned: set[str] = set()


def off(browser: str, wanted: bool | None, name: str = "Chromium", obstacle: str = "") -> bool:
    """Return whether this browser is started without its sandbox. Says why, once, unless that was asked for.

    Args:
        browser: `BrowserOptions.browser`.
        wanted: `BrowserOptions.sandbox`.
        name: What to call it.
        obstacle: Why it cannot have one, if that is known before.
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
    """Return why Chromium has no sandbox if this is root; else ""."""
    if sys.platform == "linux" and os.geteuid() == 0:
        return "Python runs as root, and Chromium has no sandbox for root. What helps: another user"
    return ""


def refused(browser: str, error: BrowserCrashed) -> bool:
    """Return whether a browser ended because the system gives it no sandbox; then it does without from now on."""
    if _REFUSED.search(error.message) is None:
        return False
    _refused[browser] = f"the system refuses it one ({_cause(error)})"
    return True


def hint(error: BrowserCrashed) -> str:
    """Return what to add to the message of a browser that must not do without and ended."""
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


async def once_more_without(options: BrowserOptions, start: Callable[[], Awaitable[T]]) -> T:
    """Start a browser; once more without its sandbox, where the system forbids that, and it was not asked for.

    Raises:
        BrowserError: It cannot be had. The text says what helps, where that is its sandbox.
    """
    try:
        return await start()
    except BrowserCrashed as e:
        if options.sandbox:
            e.message += hint(e)
        if options.sandbox is not None or not refused(options.browser, e):
            raise
        return await start()

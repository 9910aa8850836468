"""Chromium's sandbox: on wherever it can be, and a warning, once, where it cannot.

Without it a page that breaks out of the browser's own checks has all rights of the user that runs Python.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path

from py_ort.exceptions import BrowserCrashed

_log = logging.getLogger("py_ort.browser")
#: What Chromium says when it ends because it gets no sandbox.
_REFUSED = re.compile(
    r"No usable sandbox|sandboxing failed|Failed to move to new namespace|SUID sandbox helper|root without --no-sandbox"
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
_ALSO = "or the browser's setuid helper (Debian: apt-get install chromium-sandbox)"
#: By the browser asked for: why it has to do without. Only the browser itself knows for sure.
_refused: dict[str, str] = {}
_warned: set[str] = set()


def off(browser: str, wanted: bool | None) -> bool:
    """Return whether this Chromium is started without its sandbox. Says why, once, unless that was asked for.

    Args:
        browser: `BrowserOptions.browser`.
        wanted: `BrowserOptions.sandbox`.
    """
    if wanted is not None:
        return not wanted
    if sys.platform == "linux" and os.geteuid() == 0:
        reason = "Python runs as root, and Chromium has no sandbox for root. What helps: another user"
    elif browser in _refused:
        reason = _refused[browser]
    else:
        return False
    if reason not in _warned:
        _warned.add(reason)
        _log.warning(
            "Chromium runs without its sandbox: %s; or, where only trusted models run, BrowserOptions(sandbox=False) "
            "or PY_ORT_SANDBOX=0, which also silence this",
            reason,
        )
    return True


def refused(browser: str, error: BrowserCrashed) -> bool:
    """Return whether a browser ended because the system gives it no sandbox; then it does without from now on."""
    if _REFUSED.search(error.message) is None:
        return False
    _refused[browser] = f"the system refuses it one ({_cause()})"
    return True


def hint(error: BrowserCrashed) -> str:
    """Return what to add to the message of a browser that must not do without and ended."""
    if _REFUSED.search(error.message) is None:
        return ""
    return f". BrowserOptions(sandbox=True) was asked for, and {_cause()}; sandbox=None does without where it must"


def _cause() -> str:
    if sys.platform == "linux" and os.geteuid() == 0:
        return "Chromium has none for root. What helps: another user"
    for path, forbidden, help_ in _SWITCHES:
        try:
            value = (SYSCTL / path).read_text().strip()
        except OSError:
            continue
        if value == forbidden:
            return f"{path.replace('/', '.')} is {value}. What helps: {help_}, {_ALSO}"
    return (
        "user namespaces are forbidden to this process, as in most containers. What helps: a container that allows "
        f"them (a seccomp profile with clone and unshare), {_ALSO}"
    )

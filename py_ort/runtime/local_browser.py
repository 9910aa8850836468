"""The capabilities of this machine's browser: one page is asked, once in a process."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import PyOrtError
from py_ort.providers import AVAILABLE, CPU, FIRST_DEVICE, PROVIDERS, on_device, onnxruntime_name
from py_ort.runtime.probe import probe

#: Variable: with "0" no browser is started, and the answers assume that all providers work.
VARIABLE = "PY_ORT_PROBE"
_log = logging.getLogger("py_ort")


class LocalBrowser:
    """The capabilities of a browser.

    Args:
        browser: As for `InferenceSession`.
        launcher: As for `InferenceSession`.
    """

    def __init__(self, browser: str | BrowserOptions | None = None, launcher: str | None = None) -> None:
        self._browser, self._launcher = browser, launcher

    def providers(self) -> list[str]:
        """Return onnxruntime's names of the providers that run in the browser, best first."""
        return [onnxruntime_name(name) for name in self._names()]

    def device(self) -> str:
        """Return "CPU-" and the device of the best provider, as "CPU-WEBGPU"; "CPU" without a device."""
        names = dict.fromkeys((CPU, self._names()[0]))
        return "-".join(PROVIDERS[name].device_name.upper() for name in names)

    def words(self) -> str:
        """Return the browser and its adapter, in words; "" if unknown."""
        found = self._found()
        if not found:
            return ""
        return f"{found['browser']}, adapter: {found['adapter'] or 'none'}"

    def _names(self) -> list[str]:
        found = self._found()
        if found is None:
            return list(AVAILABLE)
        there = {name for name, device in found.get("devices", {}).items() if "none" not in device}
        if found.get("adapter"):
            there.add(FIRST_DEVICE)
        return [name for name in AVAILABLE if name in there or not on_device(name)]

    def _found(self) -> dict[str, Any] | None:
        """Return the result of `probe`; {} if it failed, None if the variable forbids it."""
        if os.environ.get(VARIABLE) == "0":
            return None
        return _asked(BrowserOptions.of(self._browser, self._launcher))


@cache
def _asked(options: BrowserOptions) -> dict[str, Any]:
    try:
        # The browser stays for a while: the caller will probably make sessions.
        found = probe(options, close=False, others=True)
    except PyOrtError as e:
        _log.warning("no page can be asked which providers there are: %s", e)
        return {}
    in_vain = found["adapter"] is not None and found["software"] and options.webgpu == "hardware"
    return {**found, "adapter": None} if in_vain else found

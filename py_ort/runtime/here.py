"""What this machine's browser gives: a page is asked, once in a process."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Any

from py_ort.browser.options import BrowserOptions
from py_ort.exceptions import PyOrtError
from py_ort.providers import DEFAULT, PROVIDERS, canonical_provider, on_device, onnxruntime_name
from py_ort.runtime.probe import probe

#: With "0" no browser is started by a question, and the answers are those of a machine that has everything.
VARIABLE = "PY_ORT_PROBE"
_log = logging.getLogger("py_ort")


class Here:
    """What can be said of a browser.

    Args:
        browser: As for `InferenceSession`.
        launcher: Likewise.
    """

    def __init__(self, browser: str | BrowserOptions | None = None, launcher: str | None = None) -> None:
        self._browser, self._launcher = browser, launcher

    def providers(self) -> list[str]:
        """Return onnxruntime's names of the providers that sessions take by themselves, and that run there."""
        found = self._found()
        there = found is None or bool(found.get("adapter"))
        return [onnxruntime_name(name) for name in DEFAULT if there or not on_device(name)]

    def device(self) -> str:
        """Return "CPU-WEBGPU", or "CPU" where there is no adapter."""
        return "-".join(PROVIDERS[canonical_provider(name)].device_name.upper() for name in reversed(self.providers()))

    def words(self) -> str:
        """Return the browser and its adapter, as far as they are known, in words."""
        found = self._found()
        if not found:
            return ""
        return f"{found['browser']}, adapter: {found['adapter'] or 'none'}"

    def _found(self) -> dict[str, Any] | None:
        """What the page said: nothing where there is no page, None where none was asked."""
        if os.environ.get(VARIABLE) == "0":
            return None
        return _asked(BrowserOptions.of(self._browser, self._launcher))


@cache
def _asked(options: BrowserOptions) -> dict[str, Any]:
    try:
        # The browser lives on for a while: whoever asks is going to make sessions.
        found = probe(options, close=False)
    except PyOrtError as e:
        _log.warning("no page can be asked which providers there are: %s", e)
        return {}
    in_vain = found["adapter"] is not None and found["software"] and options.webgpu == "hardware"
    return {**found, "adapter": None} if in_vain else found

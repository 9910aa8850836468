"""How a page opens a device: what it asks `navigator.gpu.requestAdapter` for, and how long it waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from py_ort.wire.json_fields import DeviceOptions, Opening

if TYPE_CHECKING:
    from py_ort.browser.options import BrowserOptions


def for_opening(browser: BrowserOptions) -> Opening:
    """Return how the page shall look for an adapter: whether among GPUs, and for how long."""
    told: Opening = {"timeoutMs": int(browser.launch_timeout * 1000)}
    if browser.settled().webgpu == "hardware":
        # "auto" takes what there is.
        told["hardware"] = "required" if browser.webgpu == "hardware" else "expected"
    return told


def for_adapter(options: Mapping[str, str], browser: BrowserOptions) -> DeviceOptions:
    """Return what a device is opened with: what `navigator.gpu.requestAdapter` takes, and `for_opening`."""
    asked: DeviceOptions = {**for_opening(browser)}
    if options.get("powerPreference"):
        asked["powerPreference"] = options["powerPreference"]
    if options.get("forceFallbackAdapter") == "1":
        asked["forceFallbackAdapter"] = True
    if options.get("subgroupMatrix") == "1":
        asked["subgroupMatrix"] = True
    return asked

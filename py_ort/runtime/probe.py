"""The capabilities of a browser, found by opening a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread
from py_ort.browser.pool import pool
from py_ort.providers import AVAILABLE, FIRST_DEVICE, PROVIDERS
from py_ort.runtime.devices import look_for_device, look_in_page


def probe(
    options: BrowserOptions, timeout: float = 60.0, *, close: bool = True, others: bool = False
) -> dict[str, Any]:
    """Return the capabilities of a browser with these options.

    Args:
        options: Options of the browser.
        timeout: Seconds for the search of an adapter.
        close: True to end the browser at once, unless others use it; False to wait for its `idle_timeout`.
        others: True to search for devices of other providers, too.

    Keys: `browser`, `user_agent`, `cross_origin_isolated`, `hardware_concurrency`; of WebGPU `adapter` (None without an
    adapter, with the reason in `no_adapter`), `software`, `features`, `limits`; with `others`, `devices`: by the names
    of other providers, the description of the device, or the reason for `none`.
    """
    return loop_thread().call(_probe(replace(options, idle_timeout=0.0) if close else options, timeout, others))


def adapter_name(device: Mapping[str, Any]) -> str:
    """Return a device's adapter, in words; "unnamed" if the page has no description, as in Firefox."""
    words = [str(device.get(key) or "") for key in ("vendor", "architecture", "description")]
    return " ".join(dict.fromkeys(word for word in words if word)) or "unnamed"


async def _probe(options: BrowserOptions, timeout: float, others: bool) -> dict[str, Any]:
    lease, patient = await pool().acquire(options), replace(options, launch_timeout=timeout)
    try:
        page = await pool().live(lease)
        hello = page.hello
        found: dict[str, Any] = {
            "browser": lease.launcher.description,
            "user_agent": hello.userAgent,
            "cross_origin_isolated": bool(hello.crossOriginIsolated),
            "hardware_concurrency": hello.hardwareConcurrency,
            "adapter": None,
        }
        if others:
            found["devices"] = {name: await look_for_device(page, name, patient) for name in _OTHERS}
            if absent := [name for name in _OTHERS if "none" in found["devices"][name]]:
                in_page, described = await look_in_page(lease, absent, patient)
                found["devices"] |= described
                pool().release(in_page) if in_page else None
        device = await look_for_device(page, FIRST_DEVICE, patient)
        if "none" in device:
            return {**found, "no_adapter": device["none"]}
        found["adapter"] = adapter_name(device)
        return {**found, **{key: device.get(key) for key in ("software", "features", "limits")}}
    finally:
        pool().release(lease)


_OTHERS = [name for name in AVAILABLE if PROVIDERS[name].on_device and name != FIRST_DEVICE]

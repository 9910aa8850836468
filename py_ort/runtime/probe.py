"""What a browser can do: one page, opened and asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from py_ort.browser.loop import loop_thread
from py_ort.browser.options import BrowserOptions
from py_ort.browser.pool import pool
from py_ort.providers import AVAILABLE, FIRST_DEVICE, PROVIDERS
from py_ort.runtime.devices import look_for_device, look_in_page


def probe(
    options: BrowserOptions, timeout: float = 60.0, *, close: bool = True, others: bool = False
) -> dict[str, Any]:
    """Return what a browser started with these options says of itself.

    Args:
        options: Of the browser.
        timeout: Seconds that looking for an adapter may take.
        close: Whether it ends at once, if nobody else uses it, and not after its `idle_timeout`.
        others: Whether devices of other providers are looked for, too.

    Keys: `browser`, `user_agent`, `cross_origin_isolated`, `hardware_concurrency`, and of WebGPU `adapter` (None
    without one; then `no_adapter` says why), `software`, `features`, `limits`; `devices`: if asked for, by the
    names of other providers what there is of them, with the `limits` of what it takes, or why there is `none`.
    """
    return loop_thread().call(_probe(replace(options, idle_timeout=0.0) if close else options, timeout, others))


def adapter_name(device: Mapping[str, Any]) -> str:
    """Return what a page says of a device's adapter, in words; "unnamed" if it tells nothing, as in Firefox."""
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

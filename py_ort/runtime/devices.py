"""Providers' devices in browsers: opened within a time limit, and in another browser if one has lost its device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread
from py_ort.browser.page import Page
from py_ort.browser.pool import SILENCE, Lease, pool
from py_ort.exceptions import NoAdapter, Timeout
from py_ort.log import SessionLog
from py_ort.providers import PROVIDERS
from py_ort.schema.gen.AskDevice import AskDeviceT
from py_ort.schema.gen.OpenDevice import OpenDeviceT
from py_ort.wire import Layout
from py_ort.wire.json_fields import DeviceDescription, DeviceOptions, Opening

if TYPE_CHECKING:
    from py_ort.compiler.placement.devices import Devices
    from py_ort.schema.gen.Call import CallT

#: Seconds to wait for a page's answer beyond its own time limit, whose error names the slow step.
_GRACE = 10.0


class Device(NamedTuple):
    """A device of a worker.

    Attributes:
        provider: The provider.
        number: Number of the device among the provider's devices.
    """

    provider: str
    number: int = 0


#: Largest time for the search of a GPU, in milliseconds.
_SEARCH_MS = int(SILENCE * 1000 * 2 / 3)


class AdapterGone(NoAdapter):
    """A browser has lost its device for good: after some crashes of its GPU process it starts no new one."""


def for_opening(browser: BrowserOptions) -> Opening:
    """Return the page's conditions for an adapter: its kind, and the time limit."""
    told: Opening = {"timeoutMs": int(browser.launch_timeout * 1000)}
    if browser.settled().webgpu == "hardware":
        # Drivers without a GPU can hang Chromium's search, which must end before the page counts as lost.
        told["timeoutMs"] = min(told["timeoutMs"], _SEARCH_MS)
        # "auto" also accepts adapters on the CPU.
        told["hardware"] = "required" if browser.webgpu == "hardware" else "expected"
    return told


async def ask_for_device(page: Page, device: Device, options: DeviceOptions, timeout: float) -> DeviceDescription:
    """Open a device in a page unless it is open; return the page's description of the device.

    Args:
        page: A worker.
        device: The device.
        options: Options of the device and its adapter.
        timeout: Seconds to wait for the answer.

    Raises:
        NoAdapter: This browser has no such device.
        InvalidArgument: The device is open with other options.
    """
    body = OpenDeviceT()
    body.provider, body.deviceId, body.options = device.provider, device.number, json.dumps(options)
    return cast(DeviceDescription, (await page.request(body, timeout=timeout)).told())


async def open_device(
    lease: Lease,
    page: Page,
    device: Device,
    settings: Mapping[str, str],
    browser: BrowserOptions | None = None,
    timeout: float | None = None,
) -> DeviceDescription:
    """Open a device in a lease's page unless it is open; return the page's description of the device.

    Args:
        lease: A share of a worker.
        page: The lease's current worker.
        device: The device.
        settings: Options of the device's provider.
        browser: The requested options, if other options may have started this browser.
        timeout: Seconds; None: `BrowserOptions.launch_timeout`.

    Raises:
        NoAdapter: This browser has no such device.
        AdapterGone: The browser has lost its device; later shares are of another browser.
        Timeout: The page did not answer in time.
    """
    wanted = browser or lease.browser.options
    place = device.provider, lease.in_page
    patience = wanted.launch_timeout + _GRACE if timeout is None else timeout
    try:
        options: DeviceOptions = {**for_opening(wanted), "given": settings}
        described = await ask_for_device(page, device, options, patience)
    except NoAdapter as e:
        if place not in lease.browser.had_devices or not lease.launcher.replaceable:
            raise
        pool().retire(lease)
        raise AdapterGone(f"the browser lost its device: {e.message}. The next session starts another browser") from e
    lease.browser.had_devices.add(place)
    return described


async def look_for_device(page: Page, provider: str, browser: BrowserOptions) -> Mapping[str, Any]:
    """Return the page's description of a provider's first device, or why there is `none`."""
    # The page itself says which step took too long.
    told: DeviceOptions = {**for_opening(browser)}
    if told.get("hardware") == "required":
        told["hardware"] = "expected"  # so that the description names the device found instead
    try:
        return await ask_for_device(page, Device(provider), told, browser.launch_timeout + _GRACE)
    except NoAdapter as e:
        return {"none": e.message}


async def look_in_page(
    lease: Lease, providers: Iterable[str], browser: BrowserOptions
) -> tuple[Lease | None, dict[str, Mapping[str, Any]]]:
    """Look in the page's own thread for devices that its worker lacks.

    Args:
        lease: A share of the worker.
        providers: The providers without a device in the worker.
        browser: The options that were asked for.

    Returns:
        A share of the page's own thread, None if there is no device in it, and the devices' descriptions by provider.
    """
    wanted = [name for name in providers if PROVIDERS[name].needs.in_page]
    if lease.in_page or not wanted:
        return None, {}
    try:
        in_page = await pool().in_page(lease)
    except Timeout:  # the browser allows no frame there
        return None, {}
    try:
        page = await pool().live(in_page)
        looked = {name: await look_for_device(page, name, browser) for name in wanted}
    except BaseException:
        pool().release(in_page)
        raise
    found = {name: described for name, described in looked.items() if "none" not in described}
    if found:
        return in_page, found
    pool().release(in_page)
    return None, {}


def devices_to_ask(
    opened: Mapping[Device, DeviceDescription], browser: str, page: Callable[[], Page]
) -> Devices | None:
    """Return the open devices of a session that placement asks about nodes.

    Args:
        opened: The devices, with the page's descriptions.
        browser: The browser and its version.
        page: Returns the session's current worker.
    """
    asked = {device: told for device, told in opened.items() if PROVIDERS[device.provider].asked}
    if not asked:
        return None
    from py_ort.compiler.placement.devices import Devices

    numbers = {device.provider: device.number for device in asked}

    def ask(provider: str, calls: Sequence[CallT], layout: Layout) -> Sequence[str]:
        body = AskDeviceT()
        body.provider, body.deviceId, body.calls = provider, numbers[provider], [*calls]
        answer = loop_thread().call(page().request(body, layout.buffers, layout.size))
        return [str(refusal or "") for refusal in answer.body.refusals]

    return Devices(json.dumps([browser, *([*device, told] for device, told in asked.items())], sort_keys=True), ask)


async def acquire_with_device(
    browser: BrowserOptions, device: Device, settings: Mapping[str, str] | None = None
) -> tuple[Lease, Page, DeviceDescription]:
    """Return a share of a browser, its worker, and the description of its device; see `open_device`."""
    for last in (False, True):
        lease = await pool().acquire(browser)
        try:
            try:
                return await _opened(lease, device, settings or {}, browser)
            except AdapterGone:
                raise
            except NoAdapter:
                in_page, _ = await look_in_page(lease, [device.provider], browser)
                if in_page is None:
                    raise
            pool().release(lease)
            lease = in_page
            return await _opened(lease, device, settings or {}, browser)
        except BaseException as e:
            pool().release(lease)
            if last or not isinstance(e, AdapterGone):
                raise
    raise AssertionError


async def _opened(
    lease: Lease, device: Device, settings: Mapping[str, str], browser: BrowserOptions
) -> tuple[Lease, Page, DeviceDescription]:
    page = await pool().live(lease)
    return lease, page, await open_device(lease, page, device, settings, browser)


#: Adapters in software that a warning has named.
_warned: set[str] = set()


def warn_of_software(provider: str, wanted: BrowserOptions, adapter: str, log: SessionLog) -> None:
    """Warn that the provider runs on the CPU: each time if there is a GPU, else once, unless software was asked for."""
    if wanted.settled().webgpu == "hardware":
        log.warning("this machine has a GPU, but %s runs in software here: %s", provider, adapter)
    elif wanted.webgpu == "auto" and adapter not in _warned:
        _warned.add(adapter)
        log.warning("%s runs in software here (%s): results are right, times are not a GPU's", provider, adapter)

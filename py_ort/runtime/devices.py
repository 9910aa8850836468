"""Devices of providers in browsers: opened within a time, and in another browser where one has none any more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from py_ort.browser.loop import loop_thread
from py_ort.browser.options import BrowserOptions
from py_ort.browser.page import Page
from py_ort.browser.pool import SILENCE, Lease, pool
from py_ort.exceptions import NoAdapter, Timeout
from py_ort.providers import PROVIDERS
from py_ort.schema.gen.AskDevice import AskDeviceT
from py_ort.schema.gen.OpenDevice import OpenDeviceT
from py_ort.wire import Layout
from py_ort.wire.json_fields import DeviceDescription, DeviceOptions, Opening

if TYPE_CHECKING:
    from py_ort.compiler.placement.devices import Devices
    from py_ort.schema.gen.Call import CallT

#: Seconds that a page has to answer, beyond those after which it gives up by itself and says what it waited for.
_GRACE = 10.0


class Device(NamedTuple):
    """A device of a worker.

    Attributes:
        provider: Whose it is.
        number: Its number among those of that provider.
    """

    provider: str
    number: int = 0


#: Milliseconds to look for a GPU at most.
_SEARCH_MS = int(SILENCE * 1000 * 2 / 3)


class AdapterGone(NoAdapter):
    """A browser that had a device has none any more: after some crashes of its GPU process it tries no more."""


def for_opening(browser: BrowserOptions) -> Opening:
    """Return how the page shall look for an adapter: whether among GPUs, and for how long."""
    told: Opening = {"timeoutMs": int(browser.launch_timeout * 1000)}
    if browser.settled().webgpu == "hardware":
        # Drivers without a GPU can hang Chromium's search: it has to end before the page counts as lost.
        told["timeoutMs"] = min(told["timeoutMs"], _SEARCH_MS)
        # "auto" takes what there is.
        told["hardware"] = "required" if browser.webgpu == "hardware" else "expected"
    return told


async def ask_for_device(page: Page, device: Device, options: DeviceOptions, timeout: float) -> DeviceDescription:
    """Have a page open a device unless it is open; return the page's description of the device.

    Args:
        page: A worker.
        device: Which one.
        options: Of the device and of its adapter.
        timeout: Seconds.

    Raises:
        NoAdapter: This browser has none.
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
    """Open a device in a page unless it is open; return what the page says of it.

    Args:
        lease: A share of a worker.
        page: The lease's worker, as it is now.
        device: Which one.
        settings: Options of its provider.
        browser: What was asked for, if other options may have started this browser.
        timeout: Seconds; None leaves it at `BrowserOptions.launch_timeout`.

    Raises:
        NoAdapter: This browser has none.
        AdapterGone: It has none any more; new shares are of another browser from now on.
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
        raise AdapterGone(f"{e.message}, any more") from e
    lease.browser.had_devices.add(place)
    return described


async def look_for_device(page: Page, provider: str, browser: BrowserOptions) -> Mapping[str, Any]:
    """Return the page's description of a provider's first device, or why there is `none`."""
    # The page itself says which step took too long.
    told: DeviceOptions = {**for_opening(browser)}
    if told.get("hardware") == "required":
        told["hardware"] = "expected"  # what there is instead is worth knowing
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
    """Return those of a session's open devices that placement asks what they take.

    Args:
        opened: The devices, with the page's descriptions.
        browser: The browser and its version.
        page: Returns the session's worker, as it is then.
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
    """Return a share of a browser, its worker, and what that says of its device; see `open_device`."""
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

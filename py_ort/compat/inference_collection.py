"""Functions of `onnxruntime.capi.onnxruntime_inference_collection`, which read arguments of its sessions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from py_ort.exceptions import InvalidArgument
from py_ort.runtime.native.memory import OrtDeviceVendorId
from py_ort.runtime.values.ort_device import OrtDevice

__all__ = ["check_and_normalize_provider_args", "get_ort_device_type", "get_vendor_id_for_device_type"]


def check_and_normalize_provider_args(
    providers: Sequence[str | tuple[str, dict[Any, Any]]] | None,
    provider_options: Sequence[dict[Any, Any]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Return names and options of providers as two lists.

    Args:
        providers: Names, or pairs of a name and its options.
        provider_options: Options for each, if all are names.
        available_provider_names: Any other name, and one that is there twice, gets a `UserWarning`.

    Returns:
        The names, and for each its options as strings.

    Raises:
        InvalidArgument: The arguments are no lists of equal length, or options are given twice.
    """
    if providers is None:
        return [], []
    for name, value in (("providers", providers), ("provider_options", provider_options)):
        if value is not None and not isinstance(value, Sequence):
            raise InvalidArgument(f"{name} is a list, not {value!r}")
    if provider_options is not None:
        if len(providers) != len(provider_options):
            raise InvalidArgument(f"there are {len(providers)} providers and {len(provider_options)} provider_options")
        if not all(isinstance(name, str) for name in providers):
            raise InvalidArgument("options stand beside the names of providers or in provider_options, not in both")
    found: dict[str, dict[str, str]] = {}
    for item in zip(providers, provider_options, strict=True) if provider_options is not None else providers:
        match item:
            case str(name):
                options: dict[Any, Any] = {}
            case (str(name), dict(options)):
                pass
            case _:
                raise InvalidArgument(f"a provider is a name, or a name and a dict of options, not {item!r}")
        if name not in available_provider_names:
            warnings.warn(f"provider {name} is none of {', '.join(available_provider_names)}", stacklevel=2)
        if name in found:
            warnings.warn(f"provider {name} is named twice: the first place counts", stacklevel=2)
        else:
            found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def get_ort_device_type(device_type: str) -> int:
    """Return onnxruntime's number of a kind of device; on Windows' DirectML it has one of its own."""
    return 4 if device_type == "dml" else OrtDevice(device_type).device_type()


def get_vendor_id_for_device_type(device_type: str) -> OrtDeviceVendorId | None:
    """Return the vendor that a device's name implies; None for "cpu" and what any vendor may make."""
    if device_type in ("cpu", "gpu", "npu"):
        return None
    return OrtDeviceVendorId(OrtDevice(device_type).device_vendor_id())

"""Devices, as onnxruntime lists them for plugins: only the CPU, because a browser does not list others."""

from __future__ import annotations

import enum
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.providers import CPU, canonical_provider, onnxruntime_name
from py_ort.runtime.available import API_VERSION
from py_ort.runtime.native.memory import OrtMemoryInfo, of_place

#: Key in a model's metadata of the hardware that a provider's compiled parts were made for.
_COMPATIBILITY = "ep_compatibility_info."


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtCompiledModelCompatibility(enum.IntEnum):
    """Usability of compiled parts of a model; py_ort has no such parts."""

    EP_NOT_APPLICABLE = 0
    EP_SUPPORTED_OPTIMAL = 1
    EP_SUPPORTED_PREFER_RECOMPILATION = 2
    EP_UNSUPPORTED = 3


@dataclass(frozen=True)
class OrtHardwareDevice:
    """A device."""

    type: OrtHardwareDeviceType = OrtHardwareDeviceType.CPU
    vendor: str = field(default_factory=platform.machine)
    vendor_id: int = 0
    device_id: int = 0
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OrtEpDevice:
    """A device with a provider for it; `SessionOptions.add_provider_for_devices` takes such."""

    ep_name: str
    device: OrtHardwareDevice = field(default_factory=OrtHardwareDevice)
    ep_vendor: str = "py_ort"
    ep_metadata: dict[str, str] = field(default_factory=lambda: {"version": API_VERSION})
    ep_options: dict[str, str] = field(default_factory=dict)

    def memory_info(self, memory_type: Any) -> OrtMemoryInfo:
        """Return where its tensors are stored."""
        return of_place("cpu")

    def create_sync_stream(self) -> NoReturn:
        """Refuse.

        Raises:
            NotImplemented: Always.
        """
        raise NotImplemented("a browser has no streams")


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """Return the CPU."""
    return [OrtHardwareDevice()]


def get_ep_devices() -> list[OrtEpDevice]:
    """Return the CPU with the wasm provider; `py-ort browsers` says which GPUs browsers have."""
    return [OrtEpDevice(onnxruntime_name(CPU))]


def get_hardware_device_ep_incompatibility_details(ep_name: str, device: OrtHardwareDevice) -> dict[str, Any]:
    """Return that every listed device is usable.

    Raises:
        InvalidArgument: There is no such provider.
    """
    canonical_provider(ep_name)
    return {"reasons_bitmask": 0, "notes": None, "error_code": 0}


def get_model_compatibility_for_ep_devices(devices: Sequence[OrtEpDevice], info: str) -> OrtCompiledModelCompatibility:
    """Return that no provider here has compiled parts.

    Raises:
        InvalidArgument: There are no devices.
        TypeError: The information is not text.
    """
    if not isinstance(info, str):
        raise TypeError(f"the information about compatibility is a string, not {type(info).__name__}")
    if not devices:
        raise InvalidArgument("no devices are given")
    return OrtCompiledModelCompatibility.EP_NOT_APPLICABLE


def get_compatibility_info_from_model_bytes(model: bytes, ep_name: str) -> str | None:
    """Return what a model says that its compiled parts for a provider were made for; None: nothing.

    Raises:
        InvalidArgument: It is not a model, or no provider is named.
    """
    if not model:
        raise InvalidArgument("no bytes of a model are given")
    return _compatibility(model, ep_name)


def _compatibility(model: bytes, ep_name: str) -> str | None:
    if not ep_name:
        raise InvalidArgument("no provider is named")
    try:
        found = onnx.ModelProto.FromString(model)
    except DecodeError as e:
        raise InvalidArgument(f"these bytes are no ONNX model: {e}") from e
    return next((p.value for p in found.metadata_props if p.key == _COMPATIBILITY + ep_name), None)


def get_compatibility_info_from_model(path: str | os.PathLike[str], ep_name: str) -> str | None:
    """Return the same of a file.

    Raises:
        InvalidArgument: It cannot be read, it is not a model, or no provider is named.
    """
    from py_ort.compiler.load.model_files import open_file

    try:
        with open_file(path) as file:
            return _compatibility(file.read(), ep_name)
    except OSError as e:
        raise InvalidArgument(f"the model {os.fspath(path)!r} cannot be read: {e.strerror}") from e

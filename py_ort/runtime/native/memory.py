"""Descriptions of native memory: plain data for code that creates them. They allocate nothing."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.providers import canonical_provider
from py_ort.runtime.values.ort_device import HEAP

_log = logging.getLogger("py_ort")
#: onnxruntime's names of the memory of the CPU and of WebGPU.
_PLACES = ("Cpu", "WebGPU_Buffer")


class OrtAllocatorType(enum.IntEnum):
    """Kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """Kinds of memory."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    """Kinds of memory of a device."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of devices."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDeviceVendorId(enum.IntEnum):
    """PCI's numbers of vendors. Browsers do not report theirs."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class ArenaExtendStrategy(enum.IntEnum):
    """Strategies for the growth of an arena."""

    kNextPowerOfTwo = 0
    kSameAsRequested = 1


@dataclass(frozen=True)
class OrtMemoryInfo:
    """A place for tensors: the name of an allocator, its kind, and the device."""

    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_vendor_id: int = field(default=0, kw_only=True)
    device_mem_type: OrtDeviceMemoryType = field(default=OrtDeviceMemoryType.DEFAULT, kw_only=True)

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
        /,
    ) -> OrtMemoryInfo:
        """Return the description of a device's memory; `device_type` and `alignment` are ignored."""
        return OrtMemoryInfo(
            name,
            allocator_type,
            device_id,
            OrtMemType.CPU_OUTPUT if device_mem_type == OrtDeviceMemoryType.HOST_ACCESSIBLE else OrtMemType.DEFAULT,
            device_vendor_id=vendor_id,
            device_mem_type=device_mem_type,
        )


_ARENA = (
    *("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk"),
    *("initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes"),
)


class OrtArenaCfg:
    """Settings of an arena: four numbers in order, or a dict of numbers by name; -1 means the default.

    Raises:
        InvalidArgument: The dict has an unknown name.
    """

    max_mem: int
    arena_extend_strategy: int
    initial_chunk_size_bytes: int
    max_dead_bytes_per_chunk: int
    initial_growth_chunk_size_bytes: int
    max_power_of_two_extend_bytes: int

    def __init__(self, settings: Mapping[str, Any] | int, *others: int) -> None:
        given = settings if isinstance(settings, Mapping) else dict(zip(_ARENA, (settings, *others), strict=False))
        if unknown := [name for name in given if name not in _ARENA]:
            raise InvalidArgument(f"OrtArenaCfg has no {unknown[0]!r}: it has {', '.join(_ARENA)}")
        for name in _ARENA:
            setattr(self, name, int(given.get(name, 0 if name == "max_mem" else -1)))


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None = None) -> None:
    """Check the arguments and log that there is no effect: a page always has the wasm heap and GPU buffers.

    Raises:
        TypeError: The argument is not an `OrtMemoryInfo`.
        NotImplemented: Browsers do not have such memory.
    """
    if not isinstance(mem_info, OrtMemoryInfo):
        raise TypeError(f"create_and_register_allocator takes an OrtMemoryInfo, not {type(mem_info).__name__}")
    if mem_info.name not in _PLACES:
        raise NotImplemented(f"a browser has no memory {mem_info.name!r}: it has {', '.join(_PLACES)}")
    _log.info("an allocator for %s has no effect: a page has the wasm heap and GPU buffers", mem_info.name)


def create_and_register_allocator_v2(
    provider_type: str,
    mem_info: OrtMemoryInfo,
    provider_options: Mapping[str, str],
    arena_cfg: OrtArenaCfg | None = None,
) -> None:
    """Check the arguments; see `create_and_register_allocator`.

    Raises:
        InvalidArgument: There is no such provider.
        NotImplemented: Browsers do not have such memory.
    """
    canonical_provider(provider_type)
    create_and_register_allocator(mem_info, arena_cfg)


def of_place(name: str) -> OrtMemoryInfo:
    """Return the description of a device's memory, with onnxruntime's names."""
    if name == HEAP:
        return OrtMemoryInfo(_PLACES[0], OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)
    return OrtMemoryInfo(_PLACES[1], OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)

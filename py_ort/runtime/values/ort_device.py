"""Devices for tensors."""

from __future__ import annotations

from py_ort.boundary import public
from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.providers import AVAILABLE, CPU, FIRST_DEVICE, PROVIDERS

#: By name, the best provider's device.
_NAMES = {name: each.device_name for each in reversed(PROVIDERS.values()) for name in each.device_names}
#: The provider of each device.
PROVIDER_OF = {PROVIDERS[name].device_name: name for name in AVAILABLE}
#: Device of the core's heap; each other device belongs to a provider.
HEAP = PROVIDERS[CPU].device_name
#: All devices of providers.
DEVICES = frozenset(_NAMES.values()) - {HEAP}
#: Device of sessions whose user names none.
DEVICE = PROVIDERS[FIRST_DEVICE].device_name
#: onnxruntime's numbers of the kinds of devices.
CPU_TYPE, GPU, FPGA, NPU, DML = range(5)
_NUMBERS = {name: (CPU_TYPE if name == HEAP else GPU, 0) for name in _NAMES.values()}
_KNOWN = " and ".join(map(repr, dict.fromkeys((HEAP, *(each.device_name for each in PROVIDERS.values())))))
#: Devices of native onnxruntime, with PCI's number of the vendor; they have names here, but no tensors.
_NATIVE = {"cuda": (GPU, 0x10DE), "dml": (GPU, 0x1414), "npu": (NPU, 0), "cann": (NPU, 0x19E5)}


@public
class OrtDevice:
    """A device for tensors: the CPU, or a provider's device; or the description of a native device ("cuda").

    Args:
        name: "cpu", "webgpu", "webgl", "webnn", or a synonym ("gpu", "webgpu-buffer"); or native: "cuda", "dml", "npu",
            "cann".
        device_id: Number of the device among devices of its kind.
        vendor_id: PCI's number of the vendor; -1: the vendor that the name implies; a browser's devices have none.

    Attributes:
        name: The device's first name, or its native name.

    Raises:
        InvalidArgument: There is no such device.
    """

    def __init__(self, name: str, device_id: int = 0, vendor_id: int = -1) -> None:
        self.name = name.lower() if name.lower() in _NATIVE else device_kind(name)
        self._id = device_id
        self._type, implied = (_NUMBERS | _NATIVE)[self.name]
        self._vendor = implied if vendor_id < 0 else vendor_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Return the device of a name, like the constructor.

        Args:
            ort_device_name: As the constructor's `name`.
            device_id: Number of the device among devices of its kind.
            vendor_id: PCI's number of the vendor; a browser's devices have none.

        Raises:
            InvalidArgument: There is no such device.
        """
        return OrtDevice(ort_device_name, device_id, int(vendor_id))

    def device_type(self) -> int:
        """Return onnxruntime's number: 0 for the CPU, 1 for a GPU, 3 for an NPU."""
        return self._type

    def device_id(self) -> int:
        """Return the device's number among devices of its type."""
        return self._id

    def device_mem_type(self) -> int:
        """Return 0: the device's usual memory."""
        return 0

    def device_vendor_id(self) -> int:
        """Return PCI's number of the named vendor; 0 for a browser's devices."""
        return self._vendor

    # Names of onnxruntime's native class.
    mem_type, vendor_id = device_mem_type, device_vendor_id

    @property
    def _ort_device(self) -> OrtDevice:
        return self

    def _get_c_device(self) -> OrtDevice:
        return self

    def __repr__(self) -> str:
        return f"OrtDevice({self.name!r}, {self._id})"


def device_kind(device: str | OrtDevice, own: str | None = None) -> str:
    """Return the first name of a device, for the device or any of its names.

    Args:
        device: The device; "gpu" is the name of several providers' devices.
        own: The provider of a session, whose device such a name means.

    Raises:
        InvalidArgument: There is no such device.
        NotImplemented: It is a device of native onnxruntime.
    """
    name = device.name if isinstance(device, OrtDevice) else device.lower()
    if name in _NATIVE:
        raise NotImplemented(f"{name!r} is a device of native onnxruntime: a browser's are {_KNOWN}")
    if name not in _NAMES:
        raise InvalidArgument(f"devices are {_KNOWN}, not {name!r}")
    if own is not None and name in PROVIDERS[own].device_names:
        return PROVIDERS[own].device_name
    return _NAMES[name]

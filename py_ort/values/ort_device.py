"""Places for tensors."""

from __future__ import annotations

from py_ort.exceptions import InvalidArgument

_NAMES = {"cpu": "cpu", "webgpu": "webgpu", "gpu": "webgpu", "webgpu-buffer": "webgpu", "gpu-buffer": "webgpu"}
_NUMBERS = {"cpu": 0, "webgpu": 1}


class OrtDevice:
    """A place for tensors: "cpu" or "webgpu".

    Attributes:
        name: One of the two.
    """

    def __init__(self, name: str, device_id: int = 0) -> None:
        self.name, self._id = device_kind(name), device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Return the device of a name; a browser knows no vendors, so `vendor_id` must be left out."""
        if vendor_id != -1:
            raise InvalidArgument(f"a browser's devices have no vendor id; got {vendor_id}")
        return OrtDevice(ort_device_name, device_id)

    def device_type(self) -> int:
        """Return onnxruntime's number: 0 for the CPU, 1 for a GPU."""
        return _NUMBERS[self.name]

    def device_id(self) -> int:
        """Return its number among those of its type."""
        return self._id

    def device_mem_type(self) -> int:
        """Return 0: the device's usual memory."""
        return 0

    def device_vendor_id(self) -> int:
        """Return 0: a browser does not tell."""
        return 0

    def __repr__(self) -> str:
        return f"OrtDevice({self.name!r}, {self._id})"


def device_kind(name: str) -> str:
    """Return "cpu" or "webgpu" for any name of a device.

    Raises:
        InvalidArgument: It is neither.
    """
    if name.lower() not in _NAMES:
        raise InvalidArgument(f"devices are 'cpu' and 'webgpu', not {name!r}")
    return _NAMES[name.lower()]

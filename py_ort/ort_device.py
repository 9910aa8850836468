"""Places for tensors."""

from __future__ import annotations

from py_ort.exceptions import InvalidArgument


class OrtDevice:
    """A place for tensors: "cpu" or "webgpu"."""

    def __init__(self, device_type: str, device_id: int = 0) -> None:
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(device_name: str, device_id: int = 0) -> OrtDevice:
        """Return the device of a name."""
        return OrtDevice(device_kind(device_name), device_id)

    def device_type(self) -> str:
        """Return "cpu" or "webgpu"."""
        return self._type

    def device_id(self) -> int:
        """Return its number."""
        return self._id


def device_kind(name: str) -> str:
    """Return "cpu" or "webgpu" for any name of a device.

    Raises:
        InvalidArgument: It is neither.
    """
    if name.lower() not in ("cpu", "webgpu", "gpu", "webgpu-buffer", "gpu-buffer"):
        raise InvalidArgument(f"devices are 'cpu' and 'webgpu', not {name!r}")
    return "cpu" if name.lower() == "cpu" else "webgpu"

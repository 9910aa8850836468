"""DLPack: tensors' memory shared with other libraries, through numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

#: True if numpy requests capsules that mark read-only memory. Older capsules, and capsules that a caller hands over,
#: have no mark: numpy then takes the memory for read-only, though consumers of such capsules (onnxruntime's) write.
_NUMPY_ASKS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def array_of(data: Any) -> np.ndarray:
    """Return an array over the memory of anything with `__dlpack__`, or of its capsule.

    Raises:
        TypeError: It has no `__dlpack__` and is no capsule.
    """
    capsule = type(data).__name__ == "PyCapsule"
    if not capsule and not hasattr(data, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__ or its capsule, not {type(data).__name__}")
    array = np.from_dlpack(_Capsule(data) if capsule else data)
    return np.asarray(_ForWriting(array)) if capsule or not _NUMPY_ASKS else array


class _Capsule:
    """A DLPack capsule of the CPU's memory, as numpy takes it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _ForWriting:
    """The memory of an array that is read-only without need."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, described = array, array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}

"""The element type in a DLPack capsule."""

from __future__ import annotations

import ctypes
from typing import Any

from py_ort.exceptions import InvalidArgument

_UINT = 1  # DLPack's code of unsigned integers


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


def is_dlpack_uint8_tensor(capsule: Any) -> bool:
    """Return True if an unused capsule holds uint8, the type that bools are exported as.

    Raises:
        InvalidArgument: It is not a capsule, or was used already.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    try:
        address = pointer(capsule, b"dltensor")
    except ValueError as e:
        raise InvalidArgument(f"{capsule!r} is no DLPack capsule, or was taken: {e}") from None
    tensor = _Tensor.from_address(address)
    return (tensor.code, tensor.bits, tensor.lanes) == (_UINT, 8, 1)

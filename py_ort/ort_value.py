"""Tensors as objects of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.ort_device import device_kind

if TYPE_CHECKING:
    from py_ort.device_tensor import DeviceTensor


class OrtValue:
    """A tensor, on the CPU or in a GPU buffer of a page ("webgpu").

    Make one with `ortvalue_from_numpy` or `ortvalue_from_shape_and_type`, or have a session leave an output on the GPU
    (`IOBinding.bind_output`). One on the GPU belongs to its page: sessions of that page read it in place, others get a
    copy. It is freed with the object.

    Attributes:
        on_device: The GPU buffer, or None for a tensor on the CPU.
    """

    def __init__(self, tensor: np.ndarray | DeviceTensor) -> None:
        if tensor is None or isinstance(tensor, list):
            raise NotImplemented("an OrtValue is a tensor: take sequences and optionals from InferenceSession.run")
        self._array = tensor if isinstance(tensor, np.ndarray) else None
        self.on_device = None if isinstance(tensor, np.ndarray) else tensor

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Return a value that shares the array's memory, or a copy of it on the GPU.

        "webgpu" is device `device_id` of the page that sessions without `browser=` share.

        Raises:
            NoAdapter: WebGPU has no adapter there.
            InvalidArgument: The GPU has no form for this type, or an integer needs more than 32 bits.
        """
        array = np.asarray(numpy_obj)
        if device_kind(device_type) == "cpu":
            return OrtValue(array)
        from py_ort.device_tensor import DeviceTensor

        return OrtValue(DeviceTensor.from_numpy(array, device_id))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Return a value of zeros; `element_type` is a numpy type or ONNX's number."""
        from py_ort.wire.tensors import NUMPY, dtype_of

        dtype = NUMPY[element_type] if isinstance(element_type, int) else np.dtype(element_type)
        if device_kind(device_type) == "cpu":
            return OrtValue(np.zeros(tuple(shape), dtype))
        from py_ort.device_tensor import DeviceTensor

        return OrtValue(DeviceTensor.empty(dtype_of(np.empty(0, dtype)), shape, device_id))

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """Return a value that shares the memory of anything with `__dlpack__`."""
        array = np.from_dlpack(data)
        return OrtValue(array.view(bool) if is_bool_tensor else array)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU: from the GPU it is downloaded

    def numpy(self) -> np.ndarray:
        """Return the elements; from the GPU they are downloaded each time."""
        if self._array is not None:
            return self._array
        assert self.on_device is not None
        return self.on_device.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def shape(self) -> list[int]:
        """Return the shape."""
        return list(self._tensor().shape)

    def data_type(self) -> str:
        """Return the type as in "tensor(float)"."""
        from py_ort.wire.tensors import TYPE_NAMES

        return f"tensor({TYPE_NAMES[self.element_type()]})"

    def element_type(self) -> int:
        """Return ONNX's number of the element type."""
        from py_ort.wire.tensors import dtype_of

        return self.on_device.dtype if self.on_device is not None else dtype_of(self.numpy())

    def device_name(self) -> str:
        """Return where the elements are: "cpu" or "webgpu"."""
        return "cpu" if self.on_device is None else "webgpu"

    def data_ptr(self) -> int:
        """Return the address of the first element, or the number of the GPU buffer."""
        return self.on_device.id if self.on_device is not None else self.numpy().ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """Return the number of bytes."""
        return self._tensor().nbytes

    def has_value(self) -> bool:
        """Return True: an empty optional is no OrtValue here."""
        return True

    def is_tensor(self) -> bool:
        """Return True."""
        return True

    def is_tensor_sequence(self) -> bool:
        """Return False."""
        return False

    def is_sparse_tensor(self) -> bool:
        """Return False."""
        return False

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Copy an array of the same shape and type into this value.

        Raises:
            InvalidArgument: Shape or type differ.
        """
        if self.on_device is not None:
            self.on_device.upload(np_arr)
            return
        array = self.numpy()
        if np_arr.shape != array.shape or np_arr.dtype != array.dtype:
            raise InvalidArgument(f"this value is {array.dtype}{self.shape()}; got {np_arr.dtype}{list(np_arr.shape)}")
        array[...] = np_arr

    def release(self) -> None:
        """Free a tensor on the GPU now; it is of no use afterwards."""
        if self.on_device is not None:
            self.on_device.free()

    def _tensor(self) -> np.ndarray | DeviceTensor:
        return self.numpy() if self.on_device is None else self.on_device

"""Tensors as objects of their own, and their binding to a session's inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.feeds import TYPE_NAMES

if TYPE_CHECKING:
    from py_ort.session import InferenceSession


class OrtDevice:
    """A place for tensors: "cpu" or "webgpu"."""

    def __init__(self, device_type: str, device_id: int = 0) -> None:
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(device_name: str, device_id: int = 0) -> OrtDevice:
        """Return the device of a name."""
        return OrtDevice(_device(device_name), device_id)

    def device_type(self) -> str:
        """Return "cpu" or "webgpu"."""
        return self._type

    def device_id(self) -> int:
        """Return its number."""
        return self._id


class OrtValue:
    """A tensor. Make one with `ortvalue_from_numpy` or `ortvalue_from_shape_and_type`."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Return a value that shares the array's memory.

        Raises:
            NotImplemented: For device "webgpu".
        """
        _cpu_only(device_type)
        return OrtValue(np.asarray(numpy_obj))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Return a value of zeros; `element_type` is a numpy type or ONNX's number."""
        from py_ort.wire.tensors import NUMPY

        _cpu_only(device_type)
        dtype = NUMPY[element_type] if isinstance(element_type, int) else np.dtype(element_type)
        return OrtValue(np.zeros(tuple(shape), dtype))

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """Return a value that shares the memory of anything with `__dlpack__`."""
        array = np.from_dlpack(data)
        return OrtValue(array.view(bool) if is_bool_tensor else array)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def numpy(self) -> np.ndarray:
        """Return the elements."""
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype=dtype, copy=copy)

    def shape(self) -> list[int]:
        """Return the shape."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Return the type as in "tensor(float)"."""
        return f"tensor({TYPE_NAMES[self.element_type()]})"

    def element_type(self) -> int:
        """Return ONNX's number of the element type."""
        from py_ort.wire.tensors import dtype_of

        return dtype_of(self._array)

    def device_name(self) -> str:
        """Return where the elements are."""
        return "cpu"

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._array.ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """Return the number of bytes."""
        return self._array.nbytes

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
        if np_arr.shape != self._array.shape or np_arr.dtype != self._array.dtype:
            raise InvalidArgument(
                f"this value is {self._array.dtype}{self.shape()}; got {np_arr.dtype}{list(np_arr.shape)}"
            )
        self._array[...] = np_arr


class IOBinding:
    """Inputs and outputs of a session, bound by name. Made by `io_binding`, run by `run_with_iobinding`."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Bind an array."""
        self._inputs[name] = OrtValue.ortvalue_from_numpy(arr_on_cpu)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind a value."""
        self._inputs[name] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output."""
        _cpu_only(device_type)
        if buffer_ptr is not None:
            raise NotImplemented("bind_output takes no addresses: bind an OrtValue with bind_ortvalue_output")
        self._outputs[name] = None

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Have an output written into a value of its shape and type."""
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing to wait for."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in the order of binding."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """Return the outputs of the last run as arrays."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._outputs.clear()
        self._results.clear()

    def run(self, run_options: Any = None) -> None:
        """Run the session; see `InferenceSession.run_with_iobinding`."""
        names = list(self._outputs)
        feeds = {name: value.numpy() for name, value in self._inputs.items()}
        results = []
        for name, array in zip(names, self._session.run(names, feeds, run_options), strict=True):
            bound = self._outputs[name]
            if bound is not None:
                bound.update_inplace(array)
            results.append(bound or OrtValue(array))
        self._results = results


def _device(name: str) -> str:
    if name.lower() not in ("cpu", "webgpu", "gpu", "webgpu-buffer", "gpu-buffer"):
        raise InvalidArgument(f"devices are 'cpu' and 'webgpu', not {name!r}")
    return "cpu" if name.lower() == "cpu" else "webgpu"


def _cpu_only(device_type: str) -> None:
    if _device(device_type) != "cpu":
        raise NotImplemented("tensors on 'webgpu' are not there yet: bind CPU tensors")

"""`OrtValue`: a value of a feed or an output as an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.boundary import public, public_function
from py_ort.exceptions import InvalidArgument, NotImplemented, WrongType
from py_ort.providers import PROVIDERS
from py_ort.providers.option import check_number
from py_ort.runtime.values.dlpack import array_of
from py_ort.runtime.values.native_names import NO_MEMORY_INFO, VALUE, with_names
from py_ort.runtime.values.ort_device import HEAP, PROVIDER_OF, OrtDevice, device_kind
from py_ort.runtime.values.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from py_ort.browser.pool import Lease
    from py_ort.runtime.devices import Device
    from py_ort.runtime.values.device_tensor import DeviceTensor


@public
@with_names(VALUE)
class OrtValue:
    """A tensor, on the CPU or in a GPU buffer of a page; or a sequence, map or optional on the CPU.

    `ortvalue_from_numpy` and `ortvalue_from_shape_and_type` make values, and sessions can leave outputs on the GPU
    (`IOBinding.bind_output`). A value on the GPU belongs to its page: sessions of that page read it in place, sessions
    of other pages receive a copy. It is freed with the object.

    Args:
        value: An array, a tensor on the GPU, an output of `InferenceSession.run` of another type, or an `OrtValue`.
        onnx_type: The type in ONNX's words; needed only if the value does not determine it (an empty sequence).

    Attributes:
        on_device: The GPU buffer, or None for a value on the CPU.
        value: The content: an array, the tensor on the GPU, a list, a dict or None.
    """

    def __init__(self, value: Any, onnx_type: str = "") -> None:
        if isinstance(value, OrtValue):
            value, onnx_type = value.value, onnx_type or value._type
        self.value: Any = value
        self._type = onnx_type
        holds_itself = value is None or isinstance(value, (np.ndarray, list, dict, SparseTensor))
        self.on_device: DeviceTensor | None = None if holds_itself else value

    @staticmethod
    def ortvalue_from_numpy(
        numpy_obj: np.ndarray, /, device_type: str | OrtDevice = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Return a value that shares the array's memory, or a copy of it on the GPU.

        Args:
            numpy_obj: The elements, of any shape and of any dtype that ONNX has (strings on the CPU only).
            device_type: The name of a device, in the page that sessions without `browser=` share; or an `OrtDevice`,
                which gives the device's number, too.
            device_id: The number of the device in that page.
            vendor_id: Must be omitted: a browser's devices have none.

        Returns:
            A value of the array's shape and dtype.

        Raises:
            NoAdapter: WebGPU has no adapter there.
            InvalidArgument: ONNX has no such dtype, the GPU has no form for it, an integer needs more than 32 bits
                there, there is no such device, or `vendor_id` is given.
            NotImplemented: It is a device of native onnxruntime ("cuda").
        """
        array = np.asarray(numpy_obj)
        _known(array)
        if _on_cpu(device_type, vendor_id):
            return OrtValue(array)
        from py_ort.runtime.values.device_tensor import DeviceTensor

        return OrtValue(DeviceTensor.from_numpy(array, _device(device_type, device_id)))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """Return a value that reads the array's memory as another type with as many bits, e.g. uint16 as bfloat16.

        Raises:
            InvalidArgument: There is no such type, or the sizes of the elements differ.
        """
        wanted = _numpy_type(onnx_element_type)
        if wanted.kind == "O" or data.dtype.kind == "O" or wanted.itemsize != data.dtype.itemsize:
            raise InvalidArgument(f"{data.dtype} cannot be read as {wanted}: the sizes of their elements differ")
        return OrtValue(data.view(wanted))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int],
        element_type: Any,
        device_type: str | OrtDevice = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: Any = None,
    ) -> OrtValue:
        """Return a value of zeros.

        Args:
            shape: Dimensions, in elements.
            element_type: A numpy dtype, or ONNX's number of an element type (`onnx.TensorProto.FLOAT`).
            device_type: The name of a device, in the page that sessions without `browser=` share; or an `OrtDevice`,
                which gives the device's number, too.
            device_id: The number of the device in that page.
            vendor_id: Must be omitted: a browser's devices have none.
            memory_info: Must be omitted: a browser has one kind of memory for each device.

        Raises:
            InvalidArgument: A size is negative, ONNX has no such type, the GPU has no form for it, there is no such
                device, or `vendor_id` is given.
            NoAdapter: WebGPU has no adapter there.
            NotImplemented: `memory_info` is given, or a device of native onnxruntime ("cuda").
        """
        if memory_info is not None:
            raise NotImplemented(NO_MEMORY_INFO)
        return make_value(shape, element_type, device_type, device_id, vendor_id)

    @staticmethod
    def from_dlpack(data: Any, /, is_bool_tensor: bool = False) -> OrtValue:
        """Return a value that shares the memory of an object with `__dlpack__`, or of a capsule from it."""
        array = array_of(data)
        return OrtValue(array.view(bool) if is_bool_tensor else array)

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor: SparseTensor) -> OrtValue:
        """Return a value that holds a sparse tensor.

        Raises:
            WrongType: The argument is not a `SparseTensor`.
        """
        if not isinstance(sparse_tensor, SparseTensor):
            raise WrongType(f"ort_value_from_sparse_tensor takes a SparseTensor, not {type(sparse_tensor).__name__}")
        return OrtValue(sparse_tensor)

    def as_sparse_tensor(self) -> SparseTensor:
        """Return the sparse tensor in this value.

        Raises:
            InvalidArgument: The value has another type.
        """
        if not isinstance(self.value, SparseTensor):
            raise InvalidArgument(f"{self!r} is not a sparse tensor")
        return self.value

    def to_dlpack(self) -> Any:
        """Return a DLPack capsule; a tensor on the GPU is downloaded, bool becomes uint8."""
        array = self.numpy()
        return (array.view(np.uint8) if array.dtype == bool else array).__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU: from the GPU it is downloaded

    def numpy(self) -> np.ndarray:
        """Return the elements; each call downloads them from the GPU.

        Raises:
            InvalidArgument: The value is not a tensor; its attribute `value` has the content.
        """
        tensor = self._tensor()
        return tensor if isinstance(tensor, np.ndarray) else tensor.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        held = self.numpy()
        made = np.array(held, dtype) if copy else np.asarray(held, dtype)
        if copy is False and made is not held:
            raise ValueError(f"{held.dtype} as {made.dtype} needs a copy")
        return made

    def shape(self) -> list[int]:
        """Return the shape."""
        return self.value.dense_shape() if self.is_sparse_tensor() else list(self._tensor().shape)

    def data_type(self) -> str:
        """Return the type as in "tensor(float)"."""
        if self.is_sparse_tensor():
            return self.as_sparse_tensor().data_type()
        if self._type and not self.is_tensor():
            return self._type
        from py_ort.wire.tensors import TYPE_NAMES

        tensor = f"tensor({TYPE_NAMES[self.element_type()]})"
        return f"seq({tensor})" if isinstance(self.value, list) else tensor

    def element_type(self) -> int:
        """Return ONNX's number of the element type; of a sequence, of its tensors' elements."""
        from py_ort.wire.tensors import TYPE_NUMBERS, dtype_of

        if self.on_device is not None:
            return self.on_device.dtype
        held = self.value
        if isinstance(held, SparseTensor):
            return held.element_type()
        while isinstance(held, list) and held:
            held = held[0]
        if isinstance(held, np.ndarray):
            return dtype_of(held)
        name = self._type.rpartition("tensor(")[2].rstrip(")")
        if name not in TYPE_NUMBERS:
            raise InvalidArgument(f"{self._describe()} has no element type")
        return TYPE_NUMBERS[name]

    def device_name(self) -> str:
        """Return the name of the elements' device."""
        return HEAP if self.on_device is None else PROVIDERS[self.on_device.device.provider].device_name

    def data_ptr(self) -> int:
        """Return the address of the first element, or the number of the GPU buffer; for `IOBinding.bind_input`."""
        return self.on_device.id if self.on_device is not None else self.numpy().ctypes.data

    def tensor_size_in_bytes(self) -> int:
        """Return the number of bytes."""
        return self._tensor().nbytes

    def has_value(self) -> bool:
        """Return False for an optional without an element."""
        return self.value is not None

    def is_tensor(self) -> bool:
        """Return True if the value is a tensor."""
        return self.on_device is not None or isinstance(self.value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Return True if the value is a sequence."""
        return isinstance(self.value, list)

    def is_sparse_tensor(self) -> bool:
        """Return True if the value is a sparse tensor."""
        return isinstance(self.value, SparseTensor)

    def update_inplace(self, data: np.ndarray | OrtValue) -> None:
        """Copy an array or another value of the same shape and type into this one.

        Raises:
            InvalidArgument: Shape or type differ.
        """
        if not isinstance(data, (np.ndarray, OrtValue)):
            raise TypeError(f"update_inplace takes an array or an OrtValue, not {type(data).__name__}")
        if isinstance(data, OrtValue):
            return _copy(data, self)
        target = self._tensor()
        if not isinstance(target, np.ndarray):
            target.upload(data)
        elif data.shape != target.shape or data.dtype != target.dtype:
            raise InvalidArgument(f"this value is {target.dtype}{self.shape()}; got {data.dtype}{list(data.shape)}")
        else:
            target[...] = data

    def release(self) -> None:
        """Free a tensor on the GPU now; the value cannot be used afterwards."""
        if self.on_device is not None:
            self.on_device.free()

    def _tensor(self) -> np.ndarray | DeviceTensor:
        if not self.is_tensor():
            raise InvalidArgument(f"{self._describe()} is not a tensor; its attribute `value` has what it holds")
        return self.value

    def _describe(self) -> str:
        if isinstance(self.value, SparseTensor):
            return f"a {self.value.data_type()}{self.value.dense_shape()}"
        return "an empty optional" if self.value is None else f"a value of type {self._type or type(self.value)}"

    def __repr__(self) -> str:
        return (
            f"<OrtValue {self.data_type()}{self.shape()} on {self.device_name()}>"
            if self.is_tensor()
            else (f"<OrtValue, {self._describe()}>")
        )


def as_values(outputs: Sequence[Any]) -> list[Any]:
    """Return a run's outputs as users receive them: with `OrtValue`s for tensors on the GPU."""
    from py_ort.runtime.values.device_tensor import DeviceTensor

    return [OrtValue(output) if isinstance(output, DeviceTensor) else output for output in outputs]


def make_value(
    shape: Sequence[int],
    element_type: Any,
    device_type: str | OrtDevice,
    device_id: int,
    vendor_id: int = -1,
    lease: Lease | None = None,
) -> OrtValue:
    """Return a value of zeros; on the GPU in the page of `lease` (default: the page that sessions share)."""
    from py_ort.wire.tensors import dtype_of

    dtype = element_dtype(element_type)
    if any(size < 0 for size in shape):
        raise InvalidArgument(f"a shape has no negative sizes: {list(shape)}")
    zeros = np.zeros(tuple(shape) if _on_cpu(device_type, vendor_id) else (0,), dtype)
    _known(zeros)
    if _on_cpu(device_type, vendor_id):
        return OrtValue(zeros)
    from py_ort.runtime.values.device_tensor import DeviceTensor

    return OrtValue(DeviceTensor.empty(dtype_of(zeros), shape, _device(device_type, device_id), lease))


@public_function
def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copy values into others of the same dtypes and shapes, on the CPU or on the GPU.

    Args:
        src: The values to copy from.
        dst: The values to copy into, in the same order.
        stream: Must be omitted: a browser has none.

    Raises:
        InvalidArgument: The numbers of values, dtypes or shapes differ.
        NotImplemented: `stream` is given.
    """
    if stream is not None:
        raise NotImplemented("a browser has no streams: leave out `stream`")
    if len(src) != len(dst):
        raise InvalidArgument(f"there are {len(src)} sources and {len(dst)} destinations")
    for source, target in zip(src, dst, strict=True):
        _copy(source, target)


def _copy(source: OrtValue, target: OrtValue) -> None:
    there, here = source.on_device, target.on_device
    if there is not None and here is not None and (there.page, there.device) == (here.page, here.device):
        here.copy_from(there)
    else:
        target.update_inplace(source.numpy())


def _on_cpu(device_type: str | OrtDevice, vendor_id: int) -> bool:
    if vendor_id > 0:
        raise InvalidArgument(f"a browser's devices have no vendor id; got {vendor_id}")
    return device_kind(device_type) == HEAP


def _device(device_type: str | OrtDevice, device_id: int) -> Device:
    from py_ort.runtime.devices import Device

    number = device_type.device_id() if isinstance(device_type, OrtDevice) else device_id
    provider = PROVIDER_OF[device_kind(device_type)]
    check_number(number, f"device_id of {provider}", provider)
    return Device(provider, number)


def _numpy_type(element_type: int) -> np.dtype[Any]:
    from py_ort.wire.tensors import NUMPY

    if element_type not in NUMPY:
        raise InvalidArgument(f"ONNX has no element type {element_type}")
    return NUMPY[element_type]


def element_dtype(element_type: Any) -> np.dtype[Any]:
    """Return numpy's type for a numpy type, or for ONNX's number of a type."""
    return _numpy_type(element_type) if isinstance(element_type, int) else np.dtype(element_type)


def _known(array: np.ndarray) -> None:
    from py_ort.wire.tensors import dtype_of

    try:
        dtype_of(array)
    except TypeError as e:
        raise InvalidArgument(str(e)) from None

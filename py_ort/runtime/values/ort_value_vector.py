"""A list of values, with onnxruntime's methods for exchange by DLPack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py_ort.boundary import public
from py_ort.runtime.values.ort_value import OrtValue


@public
class OrtValueVector(list[OrtValue]):
    """A list of `OrtValue`s; `IOBinding.get_outputs_as_ortvaluevector` returns one."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """Append an `OrtValue`, or an object for `OrtValue.from_dlpack`."""
        self.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value, is_bool_tensor))

    def reserve(self, count: int) -> None:
        """Nothing to do: a list grows by itself."""

    def shrink_to_fit(self) -> None:
        """Nothing to do."""

    def element_type_at(self, idx: int) -> int:
        """Return ONNX's number of the element type of a value."""
        return self[idx].element_type()

    def bool_tensor_indices(self) -> list[int]:
        """Return the indices of the tensors of bool, which DLPack exports as uint8."""
        return [index for index, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def dlpack_at(self, idx: int) -> Any:
        """Return a DLPack capsule of a tensor; a tensor on the GPU is downloaded, bool becomes uint8."""
        return self[idx].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None) -> list[Any]:
        """Return capsules of all tensors, or the results of a function for them (such as torch's `from_dlpack`)."""
        capsules = [self.dlpack_at(index) for index in range(len(self))]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]

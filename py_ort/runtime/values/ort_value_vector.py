"""A list of values, with the methods that onnxruntime's has for exchange by DLPack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py_ort.boundary import public
from py_ort.runtime.values.ort_value import OrtValue


@public
class OrtValueVector(list[OrtValue]):
    """`OrtValue`s in order; what `IOBinding.get_outputs_as_ortvaluevector` gives."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """Append an `OrtValue`, or anything that `OrtValue.from_dlpack` takes."""
        self.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value, is_bool_tensor))

    def reserve(self, count: int) -> None:
        """Nothing to do: a list grows by itself."""

    def shrink_to_fit(self) -> None:
        """Nothing to do."""

    def element_type_at(self, idx: int) -> int:
        """Return ONNX's number of the element type of a value."""
        return self[idx].element_type()

    def bool_tensor_indices(self) -> list[int]:
        """Return the indices of the tensors of bool, which DLPack gives out as uint8."""
        return [index for index, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def dlpack_at(self, idx: int) -> Any:
        """Return a DLPack capsule of a tensor; one on the GPU is downloaded, bool is given out as uint8."""
        return self[idx].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None) -> list[Any]:
        """Return capsules of all tensors, or what a function (such as torch's `from_dlpack`) makes of them."""
        capsules = [self.dlpack_at(index) for index in range(len(self))]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]

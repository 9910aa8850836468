"""Names by which other code reaches beneath onnxruntime's Python classes, in tables: properties, constants, methods.

Here are those of `OrtValue`; other classes' tables are beside the native classes that they return.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from py_ort.exceptions import NotImplemented
from py_ort.runtime.values.ort_device import DEVICE

T = TypeVar("T")


def with_names(names: Mapping[str, Any]) -> Callable[[type[T]], type[T]]:
    """Return a decorator that adds the names of a table to a class."""

    def add(cls: type[T]) -> type[T]:
        for name, member in names.items():
            setattr(cls, name, member)
        return cls

    return add


def result_of(method: str) -> property:
    """Return a property with the result of a method that takes no arguments."""
    return property(lambda owner: getattr(owner, method)())


def refusal(text: str) -> staticmethod[..., NoReturn]:
    """Return a method that only raises `NotImplemented` with this text."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        """Refuse; the error gives the reason.

        Raises:
            NotImplemented: Always.
        """
        raise NotImplemented(text)

    return staticmethod(refuse)


def _zeros(cls: Any, shape: Any, element_type: Any, device: Any) -> Any:
    """Return a value of zeros; see `OrtValue.ortvalue_from_shape_and_type`, also for errors.

    Args:
        shape: Dimensions, in elements.
        element_type: ONNX's number of the element type.
        device: An `OrtDevice`, or its name.
    """
    return cls.ortvalue_from_shape_and_type(shape, element_type, device)


NO_MEMORY_INFO = "memory_info: a browser has one kind of memory for each device"
#: Names of `OrtValue`, which is its own native value. No session owns one: sessions of another page receive a copy.
VALUE: dict[str, Any] = {
    "_session": None,
    "_ortvalue": property(lambda value: value),
    "_get_c_value": lambda value: value,
    "_numpy_obj": property(lambda value: value.value if hasattr(value.value, "ctypes") else None),
    "_is_webgpu_buffer": property(lambda value: value.device_name() == DEVICE),
    "ortvalue_from_shape_and_onnx_type": classmethod(_zeros),
    "ortvalue_from_shape_and_type_for_memory_info": refusal(NO_MEMORY_INFO),
    "ortvalue_from_shape_and_onnx_type_for_memory_info": refusal(NO_MEMORY_INFO),
}

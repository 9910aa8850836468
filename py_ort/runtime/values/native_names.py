"""Names by which other people's code reaches beneath onnxruntime's Python classes of values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py_ort.providers import on_device
from py_ort.runtime.values.ort_device import DEVICE

if TYPE_CHECKING:
    from py_ort.runtime.session import InferenceSession
    from py_ort.runtime.values.native_binding import NativeBinding
    from py_ort.runtime.values.ort_value import OrtValue


class NativeValueNames:
    """Of `OrtValue`: the native value beneath it is itself."""

    value: Any
    #: A value here is not a session's: sessions of another page get a copy.
    _session = None

    @property
    def _ortvalue(self) -> Any:
        return self

    def _get_c_value(self) -> Any:
        return self

    @property
    def _numpy_obj(self) -> Any:
        return self.value if hasattr(self.value, "ctypes") else None

    @property
    def _is_webgpu_buffer(self) -> bool:
        return self.device_name() == DEVICE  # type: ignore[attr-defined]  # of the class that this is a part of

    @classmethod
    def ortvalue_from_shape_and_onnx_type(cls, shape: Any, element_type: int, device: Any) -> Any:
        """Return a value of zeros; see `OrtValue.ortvalue_from_shape_and_type`, whose errors these are.

        Args:
            shape: Its dimensions, in elements.
            element_type: ONNX's number of the element type.
            device: An `OrtDevice`, or its name.
        """
        return cls.ortvalue_from_shape_and_type(shape, element_type, device)  # type: ignore[attr-defined]

    @classmethod
    def ortvalue_from_shape_and_type_for_memory_info(cls, shape: Any, element_type: Any, memory_info: Any) -> Any:
        """Refuse, as `OrtValue.ortvalue_from_shape_and_type` does when it is given a `memory_info`.

        Args:
            shape: As there.
            element_type: As there.
            memory_info: The allocator's description in native onnxruntime; a browser has none.

        Raises:
            NotImplemented: Always.
        """
        make = cls.ortvalue_from_shape_and_type  # type: ignore[attr-defined]
        return make(shape, element_type, memory_info=memory_info)

    ortvalue_from_shape_and_onnx_type_for_memory_info = ortvalue_from_shape_and_type_for_memory_info


class NativeBindingNames:
    """Of `IOBinding`."""

    _inputs: dict[str, OrtValue]
    _outputs: dict[str, OrtValue | str]
    _session: InferenceSession
    #: What a capture reads is the session's affair here, not the binding's.
    _pinned_graph_ids: frozenset[int] = frozenset()

    @property
    def _is_webgpu_session(self) -> bool:
        return any(map(on_device, self._session._open().providers))

    @property
    def _is_webgpu_graph_capture_enabled(self) -> bool:
        return self._session._open().runtime.captures

    @property
    def _iobinding(self) -> NativeBinding:
        from py_ort.runtime.values.native_binding import NativeBinding

        return NativeBinding.over(self)  # type: ignore[arg-type]

    @property
    def _bound_inputs(self) -> Mapping[str, OrtValue]:
        return dict(self._inputs)

    @property
    def _bound_outputs(self) -> Mapping[str, OrtValue | None]:
        return {name: None if isinstance(value, str) else value for name, value in self._outputs.items()}

    @property
    def _numpy_obj_references(self) -> Mapping[str, Any]:
        return {name: value.value for name, value in self._inputs.items() if value._numpy_obj is not None}

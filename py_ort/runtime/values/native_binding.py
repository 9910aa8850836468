"""`SessionIOBinding`: `IOBinding` with the arguments of onnxruntime's native class, which takes devices as objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py_ort.providers import on_device
from py_ort.runtime.values.ort_device import OrtDevice
from py_ort.runtime.values.ort_value_vector import OrtValueVector

#: Methods that are `IOBinding`'s own.
_SAME = (
    *("bind_ortvalue_input", "bind_ortvalue_output", "synchronize_inputs", "synchronize_outputs"),
    *("copy_outputs_to_cpu", "clear_binding_inputs", "clear_binding_outputs"),
)


class NativeBinding:
    """Inputs and outputs of a session, bound by name.

    Args:
        session: `InferenceSession._sess`, or the session itself.

    Attributes:
        binding: The `IOBinding`.
    """

    def __init__(self, session: Any) -> None:
        self._forward_to(getattr(session, "session", session).io_binding())

    @classmethod
    def over(cls, binding: Any) -> NativeBinding:
        """Return the native form of an `IOBinding`; values bound in either are bound in both."""
        made = cls.__new__(cls)
        made._forward_to(binding)
        return made

    def _forward_to(self, binding: Any) -> None:
        self.binding = binding
        for name in _SAME:
            setattr(self, name, getattr(binding, name))

    def bind_input(self, name: str, where: Any, *memory: Any) -> None:
        """Bind an array; or memory: a device, the element type, the shape and the address (or number of a buffer)."""
        if not isinstance(where, OrtDevice):
            return self.binding.bind_cpu_input(name, where)
        element_type, shape, address = memory
        return self.binding.bind_input(name, where.name, where.device_id(), element_type, shape, address)

    def bind_output(
        self,
        name: str,
        device: OrtDevice,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output on a device, or have it written into memory there."""
        self.binding.bind_output(name, device.name, device.device_id(), element_type, shape, buffer_ptr)

    def get_outputs(self) -> OrtValueVector:
        """Return the outputs of the last run, in the order of binding."""
        return self.binding.get_outputs_as_ortvaluevector()


#: Names of `IOBinding`. Buffers that a capture reads are pinned by the session, not by the binding.
BINDING: dict[str, Any] = {
    "_pinned_graph_ids": frozenset(),
    "_is_webgpu_session": property(lambda binding: any(map(on_device, binding._engine.providers))),
    "_is_webgpu_graph_capture_enabled": property(lambda binding: binding._engine.captures),
    "_iobinding": property(NativeBinding.over),
    "_bound_inputs": property(lambda binding: dict(binding._inputs)),
    "_bound_outputs": property(
        lambda binding: {name: None if isinstance(to, str) else to for name, to in binding._outputs.items()}
    ),
    "_numpy_obj_references": property(
        lambda binding: {name: v.value for name, v in binding._inputs.items() if v._numpy_obj is not None}
    ),
}

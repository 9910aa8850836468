"""`SessionIOBinding`: `IOBinding` with the arguments of onnxruntime's native class, which takes devices as objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py_ort.runtime.native.session import NativeSession
from py_ort.runtime.session import InferenceSession
from py_ort.runtime.values.io_binding import IOBinding
from py_ort.runtime.values.ort_device import OrtDevice
from py_ort.runtime.values.ort_value_vector import OrtValueVector


class NativeBinding:
    """Inputs and outputs of a session, bound by name.

    Args:
        session: `InferenceSession._sess`, or the session itself.
    """

    def __init__(self, session: NativeSession | InferenceSession) -> None:
        self.binding = IOBinding(session.session if isinstance(session, NativeSession) else session)
        self._forward()

    @classmethod
    def over(cls, binding: IOBinding) -> NativeBinding:
        """Return the native form of a binding; what is bound in one is bound in both."""
        made = cls.__new__(cls)
        made.binding = binding
        made._forward()
        return made

    def _forward(self) -> None:
        binding = self.binding
        self.bind_ortvalue_input = binding.bind_ortvalue_input
        self.bind_ortvalue_output = binding.bind_ortvalue_output
        self.synchronize_inputs = binding.synchronize_inputs
        self.synchronize_outputs = binding.synchronize_outputs
        self.copy_outputs_to_cpu = binding.copy_outputs_to_cpu
        self.clear_binding_inputs = binding.clear_binding_inputs
        self.clear_binding_outputs = binding.clear_binding_outputs

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

"""Inputs and outputs of a session, bound to values by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.exceptions import NotImplemented
from py_ort.ort_device import device_kind
from py_ort.ort_value import OrtValue

if TYPE_CHECKING:
    from py_ort.session import InferenceSession


class IOBinding:
    """Inputs and outputs of a session, bound by name. Made by `io_binding`, run by `run_with_iobinding`."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | str] = {}  # a value to write to, or a device
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Bind an array."""
        self._inputs[name] = OrtValue.ortvalue_from_numpy(arr_on_cpu)

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Refuse: addresses mean nothing in a browser."""
        raise NotImplemented("bind_input takes no addresses: bind an OrtValue with bind_ortvalue_input")

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
        """Ask for an output, on the CPU or left on the GPU ("webgpu")."""
        if buffer_ptr is not None:
            raise NotImplemented("bind_output takes no addresses: bind an OrtValue with bind_ortvalue_output")
        self._outputs[name] = device_kind(device_type)

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
        on_gpu = [name for name, target in self._outputs.items() if _wanted_on(target) == "webgpu"]
        outputs = self._session._run(names, self._inputs, run_options, on_gpu)
        results = []
        for target, output in zip(self._outputs.values(), outputs, strict=True):
            made = OrtValue(output)
            if isinstance(target, OrtValue):
                _move(made, target)
            results.append(target if isinstance(target, OrtValue) else made)
        self._results = results


def _wanted_on(target: OrtValue | str) -> str:
    return target.device_name() if isinstance(target, OrtValue) else target


def _move(made: OrtValue, target: OrtValue) -> None:
    """Write an output into the value bound to it."""
    if made.on_device is None or target.on_device is None or made.on_device.page is not target.on_device.page:
        target.update_inplace(made.numpy())
    else:
        target.on_device.copy_from(made.on_device)
        made.release()

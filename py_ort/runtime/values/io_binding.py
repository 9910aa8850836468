"""Inputs and outputs of a session, bound to values by name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from py_ort.boundary import public
from py_ort.exceptions import InvalidArgument, WrongType
from py_ort.providers import PROVIDERS
from py_ort.runtime.values.native_binding import BINDING
from py_ort.runtime.values.native_names import with_names
from py_ort.runtime.values.ort_device import DEVICES, PROVIDER_OF, device_kind
from py_ort.runtime.values.ort_value import OrtValue, copy_tensors
from py_ort.runtime.values.ort_value_vector import OrtValueVector

if TYPE_CHECKING:
    from py_ort.browser.page import Page
    from py_ort.compiler import NodeArg
    from py_ort.runtime.devices import Device
    from py_ort.runtime.values.device_tensor import DeviceTensor
    from py_ort.runtime.values.output_location import OnGpu


class Engine(Protocol):
    """The part of `PageEngine` that a binding needs."""

    outputs: list[NodeArg]

    @property
    def providers(self) -> list[str]: ...
    @property
    def captures(self) -> bool: ...
    @property
    def device(self) -> Device | None: ...
    @property
    def page_device(self) -> Device | None: ...
    def check_input_name(self, name: str) -> None: ...
    def tensor_at(self, number: int, dtype: int, shape: Sequence[int]) -> DeviceTensor: ...
    def run(
        self, names: Sequence[str], feeds: Mapping[str, Any], run_options: Any, on_gpu: Callable[[Page], OnGpu], /
    ) -> list[Any]: ...


class Session(Protocol):
    """The part of `InferenceSession` that a binding needs."""

    def _offering(self, what: str) -> Engine: ...


@public
@with_names(BINDING)
class IOBinding:
    """Inputs and outputs of a session, bound by name. Made by `io_binding`, run by `run_with_iobinding`."""

    def __init__(self, session: Session) -> None:
        self._session = session  # which is not closed while it is bound
        self._engine = session._offering("io_binding()")
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | str] = {}  # a value to write to, or a device
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Bind an array.

        Raises:
            InvalidArgument: The model has no such input, or the value is not an array.
        """
        if not isinstance(arr_on_cpu, np.ndarray):
            raise WrongType(f"bind_cpu_input takes an array for {name!r}, not {type(arr_on_cpu).__name__}")
        self._bind_input(name, OrtValue(arr_on_cpu))

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind memory of the CPU by its address, or a GPU buffer by its number (`OrtValue.data_ptr` has both).

        The session reads the memory when it runs, so the memory must exist until then.

        Args:
            name: The input.
            device_type: The name of a device, see `OrtDevice`; "gpu" is the session's own.
            device_id: The GPU device that the session runs on; 0: whichever that is.
            element_type: A numpy dtype, or ONNX's number of an element type; strings have no address.
            shape: Dimensions, in elements; these are contiguous, in C order.
            buffer_ptr: The address of the first element; on a GPU the number of a buffer of the session's page.

        Raises:
            InvalidArgument: The model has no such input, the session is on another GPU device or on none, or there is
                no such device or type. The run raises if the memory does not fit the input's type and shape.
            NotImplemented: It is a device of native onnxruntime ("cuda").
        """
        self._check_device(device_type, device_id)
        self._bind_input(name, self._at(device_type, element_type, shape, buffer_ptr))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind a value.

        Raises:
            InvalidArgument: The model has no such input, or the value is not an `OrtValue`.
        """
        if not isinstance(ortvalue, OrtValue):
            raise WrongType(f"bind_ortvalue_input takes an OrtValue for {name!r}, not {type(ortvalue).__name__}")
        self._bind_input(name, ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output: on the CPU, left on the GPU, or written to an address or into a GPU buffer.

        Args:
            name: The output.
            device_type: The name of a device, see `OrtDevice`; "gpu" is the session's own.
            device_id: The GPU device that the session runs on; 0: whichever that is.
            element_type: With `buffer_ptr`: a numpy dtype, or ONNX's number of an element type. Else not read.
            shape: With `buffer_ptr`: dimensions, in elements; these are contiguous, in C order. Else not read.
            buffer_ptr: Target: the address of the first element, on a GPU the number of a buffer of the
                session's page. None: a new value, which `get_outputs` returns.

        Raises:
            InvalidArgument: The session is on another GPU device or on none, there is no such device or type, or
                `buffer_ptr` comes without `element_type` and `shape`. The run raises if the model has no such output,
                or if the output does not fit.
            NotImplemented: It is a device of native onnxruntime ("cuda").
        """
        self._check_device(device_type, device_id)
        if buffer_ptr is None:
            self._outputs[name] = self._kind(device_type)
            return
        if element_type is None or shape is None:
            raise InvalidArgument(f"bind_output of {name!r} to an address takes its element_type and shape too")
        self._outputs[name] = self._at(device_type, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to a value of the output's shape and type."""
        if not isinstance(ortvalue, OrtValue):
            raise WrongType(f"bind_ortvalue_output takes an OrtValue, not {type(ortvalue).__name__}")
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: commands of one page are done in their order."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: commands of one page are done in their order."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in the order of binding."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Return the outputs of the last run, with methods for DLPack."""
        return OrtValueVector(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return the outputs of the last run in the form of `InferenceSession.run`."""
        return [value.numpy() if value.is_tensor() else value.value for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._outputs.clear()
        self._results.clear()

    def run(self, run_options: Any = None) -> None:
        """Run the session; see `InferenceSession.run_with_iobinding`."""
        if not self._outputs:
            raise InvalidArgument("no output is bound: bind_output or bind_ortvalue_output one")
        names = list(self._outputs)
        tensors = {name: t.on_device if isinstance(t, OrtValue) else None for name, t in self._outputs.items()}
        on_gpu = [name for name, tensor in tensors.items() if tensor is not None or self._outputs[name] in DEVICES]

        def places(page: Page) -> OnGpu:
            """Return the bound tensors of the session's page, which is known when the run begins."""
            on_cpu = self._engine.device is None  # no node is on a GPU: values are copied afterwards
            within = ((name, tensors[name]) for name in on_gpu if not (on_cpu and tensors[name] is not None))
            return {name: tensor if tensor is not None and tensor.page is page else None for name, tensor in within}

        outputs = self._engine.run(names, self._inputs, run_options, places)
        types = {arg.name: arg.type for arg in self._engine.outputs}
        results = []
        for (name, target), output in zip(self._outputs.items(), outputs, strict=True):
            if not isinstance(target, OrtValue):
                results.append(OrtValue(output, types[name]))
                continue
            if target.on_device is None or output is not target.on_device:
                made = OrtValue(output, types[name])
                copy_tensors([made], [target])
                made.release()
            results.append(target)
        self._results = results

    def _check_device(self, device_type: str, device_id: int) -> None:
        kind, own = self._kind(device_type), self._engine.page_device
        if kind not in DEVICES:
            return
        if own is not None and (PROVIDER_OF[kind] != own.provider or device_id not in (0, own.number)):
            raise InvalidArgument(
                f"this session is on device {own.number} of {own.provider}: nothing of device {device_id} of "
                f"{PROVIDER_OF[kind]} can be bound; name {PROVIDERS[own.provider].device_name!r}, or no device"
            )

    def _kind(self, device_type: str) -> str:
        """Return the first name of a device; "gpu" is the session's own."""
        own = self._engine.page_device
        return device_kind(device_type, own and own.provider)

    def _bind_input(self, name: str, value: OrtValue) -> None:
        self._engine.check_input_name(name)
        self._inputs[name] = value

    def _at(self, device_type: str, element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
        from py_ort.runtime.values.ort_value import element_dtype
        from py_ort.schema.gen.DType import DType
        from py_ort.wire.tensors import dtype_of

        dtype = element_dtype(element_type)
        if self._kind(device_type) in DEVICES:
            return OrtValue(self._engine.tensor_at(address, dtype_of(np.empty(0, dtype)), shape))
        if dtype_of(np.empty(0, dtype)) == DType.string_:
            raise InvalidArgument("Only binding non-string Tensors is supported: strings have no address")
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory: Any = (ctypes.c_byte * size).from_address(address) if size else b""
        return OrtValue(np.frombuffer(memory, dtype).reshape(tuple(shape)))

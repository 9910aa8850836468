"""A session in a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from py_ort.browser.page import Page
from py_ort.exceptions import ProtocolError, WorkerEnded
from py_ort.runtime.devices import Device
from py_ort.runtime.values.device_tensor import DeviceTensor, has_form
from py_ort.schema.gen.Location import Location
from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.wire.json_fields import RunInfo
from py_ort.wire.values import value_of

if TYPE_CHECKING:
    from py_ort.runtime.values.output_location import OnGpu
    from py_ort.wire import Answer


class Loaded(NamedTuple):
    """A session in a page.

    Attributes:
        page: The session's worker.
        number: The worker's number of the session.
        device: Device for feeds and outputs, besides the heap; None if no node is on a device.
    """

    page: Page
    number: int
    device: Device | None

    @property
    def gone(self) -> bool:
        """True if the worker was ended: the session must be loaded into the next one."""
        return isinstance(self.page.lost, WorkerEnded)

    def value(self, description: TensorDescT, payload: memoryview) -> Any:
        """Return the output of a worker's description: an array, a list of arrays, or a tensor on the device.

        Raises:
            ProtocolError: The output cannot be on the described device.
        """
        if description.location != Location.device:
            return value_of(description, payload)
        on = self.device
        if on is None or not has_form(on.provider, description.dtype):
            raise ProtocolError(f"output {description.name!r} of type {description.dtype} is said to be on a device")
        return DeviceTensor(self.page, description.gpuId, description.dtype, description.dims or [], device=on)

    def outputs_of(
        self, answer: Answer, names: Sequence[str], on_gpu: OnGpu | None = None
    ) -> tuple[list[Any], RunInfo]:
        """Return the outputs in a page's answer, in the order of `names`, and `RunResult.info`.

        Raises:
            ProtocolError: An output is missing.
        """
        by_name: dict[str, Any] = {name: tensor for name, tensor in (on_gpu or {}).items() if tensor is not None}
        for description in answer.body.outputs or ():
            if description.name not in by_name:
                by_name[description.name] = self.value(description, answer.payload)
        if missing := [name for name in names if name not in by_name]:
            raise ProtocolError(f"the page's answer to a run lacks output {missing[0]!r}")
        return [by_name[name] for name in names], cast(RunInfo, answer.told())

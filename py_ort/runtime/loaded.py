"""A session in a page."""

from __future__ import annotations

from typing import Any, NamedTuple

from py_ort.browser.page import Page
from py_ort.exceptions import ProtocolError, WorkerEnded
from py_ort.runtime.devices import Device
from py_ort.runtime.values.device_tensor import DeviceTensor, has_form
from py_ort.schema.gen.Location import Location
from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.wire.values import value_of


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

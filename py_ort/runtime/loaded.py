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
        page: The worker that it is in.
        number: What the worker calls it.
        device: Where its feeds and outputs may be, besides the heap; None if none of its nodes is on a device.
    """

    page: Page
    number: int
    device: Device | None

    @property
    def gone(self) -> bool:
        """True if the worker was ended: the session must be loaded into the next one."""
        return isinstance(self.page.lost, WorkerEnded)

    def value(self, description: TensorDescT, payload: memoryview) -> Any:
        """Return an output that the worker describes: an array, a list of them, or a tensor on the device.

        Raises:
            ProtocolError: It cannot be where it is said to be.
        """
        if description.location != Location.device:
            return value_of(description, payload)
        on = self.device
        if on is None or not has_form(on.provider, description.dtype):
            raise ProtocolError(f"output {description.name!r} of type {description.dtype} is said to be on a device")
        return DeviceTensor(self.page, description.gpuId, description.dtype, description.dims or [], device=on)

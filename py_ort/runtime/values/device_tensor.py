"""A tensor on a device of a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.page import Page
from py_ort.browser.pool import Lease, pool
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidArgument, ProtocolError, WorkerEnded
from py_ort.providers import PROVIDERS
from py_ort.runtime.devices import Device, acquire_with_device, open_device
from py_ort.schema.gen.JsepAlloc import JsepAllocT
from py_ort.schema.gen.JsepCopy import JsepCopyT
from py_ort.schema.gen.JsepCopyAsync import JsepCopyAsyncT
from py_ort.schema.gen.JsepFree import JsepFreeT
from py_ort.wire import Answer
from py_ort.wire.tensors import NUMPY, dtype_name, dtype_of


class DeviceTensor:
    """Memory of a device with a type and a shape. If the object owns the memory, the memory is freed with it.

    Attributes:
        page: The page of the device.
        id: The page's number of the memory; 0 after `free`.
        dtype: The `DType` of the elements.
        shape: The dimensions.
        stored: numpy's type of the elements as the device stores them.
        device: The device.
        fits: The input that the tensor was last found to fit.
    """

    def __init__(
        self,
        page: Page,
        id: int,
        dtype: int,
        shape: Sequence[int],
        lease: Lease | None = None,
        owned: bool = True,
        *,
        device: Device,
    ) -> None:
        self.page, self.id, self.dtype, self.shape = page, id, dtype, tuple(map(int, shape))
        self.stored = _storage(device.provider, dtype)
        self._lease = lease  # keeps the browser alive, if not None
        self._owned, self.device = owned, device
        self.fits: NodeArg | None = None

    @classmethod
    def empty(cls, dtype: int, shape: Sequence[int], device: Device, shared: Lease | None = None) -> DeviceTensor:
        """Allocate a tensor in the page of `shared`, or of the default browser."""
        size = max(int(np.prod(shape, dtype=np.int64)) * _storage(device.provider, dtype).itemsize, 1)
        body = JsepAllocT()
        body.provider, body.deviceId = device
        body.size = -(-size // 16) * 16
        return loop_thread().call(cls._allocated(body, dtype, shape, device, shared))

    @classmethod
    async def _allocated(
        cls, body: JsepAllocT, dtype: int, shape: Sequence[int], device: Device, shared: Lease | None
    ) -> DeviceTensor:
        if shared is None:
            lease, _, _ = await acquire_with_device(BrowserOptions(), device)
        else:
            lease = pool().share(shared)
        while True:
            try:
                page = await pool().live(lease)
                await open_device(lease, page, device, {})
                answer = await page.request(body, unwanted=partial(_unwanted, page))
                return cls(page, answer.body.id, dtype, shape, lease, device=device)
            except WorkerEnded:
                continue
            except BaseException:
                pool().release(lease)
                raise

    @classmethod
    def from_numpy(cls, array: np.ndarray, device: Device) -> DeviceTensor:
        """Upload an array to the page of the default browser."""
        made = cls.empty(dtype_of(array), array.shape, device)
        made.upload(array)
        return made

    def upload(self, array: np.ndarray) -> None:
        """Write an array of the tensor's type and shape into its memory.

        Raises:
            InvalidArgument: Type or shape differ, or an integer needs more than 32 bits.
        """
        if dtype_of(array) != self.dtype or array.shape != self.shape:
            raise InvalidArgument(
                f"this value is {dtype_name(self.dtype)}{list(self.shape)}; got {array.dtype}{list(array.shape)}"
            )
        wide = np.ascontiguousarray(array).astype(self.stored, copy=False)
        if array.dtype.itemsize > self.stored.itemsize and not np.array_equal(wide, array):
            raise InvalidArgument(f"an integer of {array.dtype} beyond 32 bits cannot be on {self.device.provider}")
        data = wide.tobytes()
        data += bytes(-len(data) % 4)
        body = JsepCopyT()
        body.src, body.dst, body.size = 0, self.live(), len(data)
        if data:
            loop_thread().call(self.page.request(body, [data], len(data)))

    def copy_from(self, other: DeviceTensor) -> None:
        """Copy another tensor of this page, of the same type and shape, on the GPU."""
        if (other.dtype, other.shape) != (self.dtype, self.shape):
            raise InvalidArgument(
                f"the bound value is {dtype_name(self.dtype)}{list(self.shape)}; "
                f"the output is {dtype_name(other.dtype)}{list(other.shape)}"
            )
        body = JsepCopyT()
        body.src, body.dst, body.size = other.live(), self.live(), self.nbytes
        if body.size:
            loop_thread().call(self.page.request(body))

    def numpy(self) -> np.ndarray:
        """Download the elements."""
        count = int(np.prod(self.shape, dtype=np.int64))
        if count == 0:
            return np.zeros(self.shape, NUMPY[self.dtype])
        body = JsepCopyAsyncT()
        body.src, body.size = self.live(), self.nbytes
        payload = loop_thread().call(self.page.request(body)).payload
        if len(payload) < self.nbytes:
            raise ProtocolError(f"the page gave {len(payload)} bytes of a GPU buffer, not {self.nbytes}")
        elements = np.frombuffer(payload, self.stored, count).reshape(self.shape)
        return elements.astype(NUMPY[self.dtype], copy=False)

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes, as the device stores them."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.stored.itemsize

    def free(self) -> None:
        """Free the memory; the tensor cannot be used afterwards."""
        buffer, self.id = self.id, 0
        lease, self._lease = self._lease, None
        if not buffer or not self._owned:
            return
        _free(self.page, buffer)
        if lease is not None:
            soon(lambda: pool().release(lease))

    def __del__(self) -> None:
        if getattr(self, "id", 0):
            self.free()

    def live(self, what: str = "this tensor") -> int:
        """Return the page's number of the memory.

        Args:
            what: Name of the tensor for the message.

        Raises:
            InvalidArgument: The tensor was freed.
        """
        if not self.id:
            raise InvalidArgument(f"{what} was freed: nothing can be read from it or written to it")
        return self.id


@cache
def has_form(provider: str, dtype: int) -> bool:
    """Return True if elements of a `DType` can be on a provider's device."""
    return dtype_name(dtype) in PROVIDERS[provider].elements


@cache
def _storage(provider: str, dtype: int) -> np.dtype[Any]:
    """Return numpy's type of elements as a provider's device stores them."""
    if not has_form(provider, dtype):
        raise InvalidArgument(f"{dtype_name(dtype)} has no form on {provider}")
    stored = PROVIDERS[provider].elements[dtype_name(dtype)]
    return NUMPY[dtype] if stored == dtype_name(dtype) else np.dtype(stored)


def _unwanted(page: Page, answer: Answer) -> None:
    _free(page, answer.body.id)


def _free(page: Page, buffer: int) -> None:
    """Free a buffer soon; safe in any thread, also during garbage collection."""
    page.freed.append(buffer)
    if not page.freeing:  # otherwise the loop is about to free all of them
        page.freeing = True
        soon(lambda: _post_freed(page))


def _post_freed(page: Page) -> None:
    """Free all buffers in one message: a decoder's step frees one for each cache."""
    page.freeing = False
    ids = [page.freed.popleft() for _ in range(len(page.freed))]
    if ids:
        body = JsepFreeT()
        body.id, body.others = ids[0], ids[1:]
        page.post(body)

"""Single WebGPU kernels: the JSEP contract between Python and a page, with one message for each call.

    from py_ort.runtime.jsep import JsepBackend

    with JsepBackend() as backend:
        relu = backend.create_kernel("Relu")
        (y,) = backend.run(relu, [np.array([-1, 2], np.float32)])
        y.numpy()  # array([0., 2.], dtype=float32)

The core's calls into the page (wasm_build/include/py_ort/abi.h) have the same names: sessions use the same functions
without the websocket.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.boundary import public
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread, soon
from py_ort.browser.pool import pool
from py_ort.exceptions import InvalidArgument, PyOrtError, RuntimeException
from py_ort.lazy_imports import import_whole
from py_ort.providers import FIRST_DEVICE
from py_ort.providers.provider_options import check_options
from py_ort.runtime.devices import Device, acquire_with_device
from py_ort.runtime.values.device_tensor import DeviceTensor
from py_ort.runtime.values.ort_value import OrtValue
from py_ort.schema.dialect import RESIDUAL_COLUMNS, X_COLUMNS
from py_ort.schema.gen.JsepAlloc import JsepAllocT
from py_ort.schema.gen.JsepCopy import JsepCopyT
from py_ort.schema.gen.JsepCopyAsync import JsepCopyAsyncT
from py_ort.schema.gen.JsepCreateKernel import JsepCreateKernelT
from py_ort.schema.gen.JsepFree import JsepFreeT
from py_ort.schema.gen.JsepReleaseKernel import JsepReleaseKernelT
from py_ort.schema.gen.JsepRun import JsepRunT
from py_ort.schema.gen.Location import Location
from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.schema.operand_sizes import check, contract
from py_ort.wire import Layout
from py_ort.wire.tensors import dtype_of, on_gpu, pack

if TYPE_CHECKING:
    from py_ort.browser.page import Page
    from py_ort.browser.pool import Lease
    from py_ort.ir.operators import Operator
    from py_ort.schema.operands import Contract

#: An input of a kernel: an array, a value (on the CPU or the device), or None if it is omitted.
Input = np.ndarray | OrtValue | None


@public
class JsepBackend:
    """A page's device, its buffers and its kernels.

    Buffers and kernels are numbers, as in the contract; `run` accepts and returns tensors. `close` frees buffers and
    kernels; values that `run` returned free themselves.

    Args:
        options: Options of the provider that choose a device (of webgpu: `deviceId`, `powerPreference`,
            `forceFallbackAdapter`).
        browser: A browser's name, or `BrowserOptions`. Sessions of the same browser share the page.
        launcher: "playwright" or "process"; default: the better one for the browser.
        provider: Provider of the device; default: webgpu.

    Attributes:
        device: The page's description of the device: vendor, architecture, description, software, features, limits.

    Raises:
        NoAdapter: The provider has no device in this browser.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        browser: str | BrowserOptions | None = None,
        launcher: str | None = None,
        provider: str = FIRST_DEVICE,
    ) -> None:
        self._lease: Lease | None = None
        checked, _ = check_options(provider, options or {})
        self._device = Device(provider, int(checked.get("deviceId", 0)))
        self._buffers: set[int] = set()
        self._kernels: dict[int, tuple[Operator, Contract | None, Mapping[str, Any]]] = {}
        import_whole("onnx_ir", "py_ort.ops", "py_ort.compiler.plan.attributes", "py_ort.user_kernels.registry")
        loop_thread().call(self._enter(BrowserOptions.of(browser, launcher), checked))

    async def _enter(self, browser: BrowserOptions, options: Mapping[str, str]) -> None:
        # Numbers are valid in this worker only.
        self._lease, self._worker, self.device = await acquire_with_device(browser, self._device, options)

    # --- buffers

    def alloc(self, size: int) -> int:
        """Create a GPU buffer of `size` zero bytes; return its number."""
        body = JsepAllocT()
        body.provider, body.deviceId = self._device
        body.size = -(-max(size, 1) // 16) * 16
        buffer: int = self._ask(body).body.id
        self._buffers.add(buffer)
        return buffer

    def free(self, buffer: int) -> None:
        """Free a buffer.

        Raises:
            InvalidArgument: There is no buffer of this number.
        """
        self._buffers.discard(buffer)
        body = JsepFreeT()
        body.id = buffer
        self._ask(body)

    def copy(self, source: bytes | np.ndarray | int, target: int, size: int | None = None) -> None:
        """Copy into a buffer: from memory of Python, or from another buffer.

        Bytes are copied unchanged. docs/internals.md, "Elements on the GPU", describes the form of elements there;
        `run` and `OrtValue` convert elements.

        Args:
            source: Bytes, an array (its bytes in C order), or the number of a buffer of the same page.
            target: The number of the written buffer; writing starts at its first byte.
            size: Number of bytes; required if `source` is a buffer.

        Raises:
            InvalidArgument: The bytes do not fit, there is no such buffer, or `size` is missing or wrong.
            BrowserError: The page or its GPU is lost.
        """
        body = JsepCopyT()
        body.dst = target
        if isinstance(source, int):
            if size is None:
                raise InvalidArgument("a copy between buffers takes a size in bytes")
            body.src, body.size = source, size
            self._ask(body)
            return
        data = source.tobytes() if isinstance(source, np.ndarray) else bytes(source)
        if size is not None and size != len(data):
            raise InvalidArgument(f"there are {len(data)} bytes to copy, not {size}")
        body.src, body.size = 0, len(data)
        self._ask(body, [data] if data else [])

    def copy_async(self, source: int, size: int) -> Future[bytes]:
        """Start to read `size` bytes of a buffer; return the future of the bytes."""
        body = JsepCopyAsyncT()
        body.src, body.size = source, size

        async def read() -> bytes:
            return bytes((await self._page().request(body)).payload)

        return loop_thread().submit(read())

    # --- kernels

    def create_kernel(self, op_type: str, attributes: Mapping[str, Any] | None = None, domain: str = "") -> int:
        """Create a kernel.

        Args:
            op_type: The operator, in its newest opset's form (docs/internals.md, "Canonical operators").
            attributes: Numbers, texts, lists of them, or arrays.
            domain: The operator's domain; "" is ai.onnx. User kernels have their own (see `py_ort.register_kernel`).

        Returns:
            The kernel's number, for `run` and `release_kernel`.

        Raises:
            NotImplemented: There is no WebGPU kernel for this operator.
        """
        import onnx_ir as ir

        from py_ort.compiler.plan.attributes import pack_attributes
        from py_ort.ir.operators import operator

        items = [ir.convenience.convert_attribute(name, _plain(value)) for name, value in (attributes or {}).items()]
        body = JsepCreateKernelT()
        body.provider, body.deviceId = self._device
        body.opType, body.domain = op_type, domain
        body.attributes = list(pack_attributes(items))
        declared = operator(domain, op_type)
        if declared.kernel is not None:
            body.userKernel = json.dumps(declared.kernel.definition)
        kernel: int = self._ask(body).body.id
        self._kernels[kernel] = declared, contract(domain, op_type), dict(attributes or {})
        return kernel

    def release_kernel(self, kernel: int) -> None:
        """Release a kernel."""
        self._kernels.pop(kernel, None)
        body = JsepReleaseKernelT()
        body.id = kernel
        self._ask(body)

    def run(
        self, kernel: int, inputs: Sequence[Input], outputs: int = 1, host: Collection[int] | None = None
    ) -> list[OrtValue]:
        """Run a kernel.

        Args:
            kernel: The number that `create_kernel` returned.
            inputs: Arrays, of any shape and dtype that the kernel accepts, are uploaded for this run; values on the GPU
                are read in place; None: omitted.
            outputs: Number of outputs.
            host: Indices of inputs that the kernel reads on the CPU (shapes, axes, pads). Default: the operator's host
                inputs, and on the CPU also its `host_if_constant` inputs.

        Returns:
            The outputs, on the GPU.

        Raises:
            InvalidArgument: An input is in another page, or there is no such kernel.
            RuntimeException, NotImplemented: The kernel refuses these inputs.
        """
        if host is None:
            host = self._host_inputs(kernel, inputs)
        layout, body = Layout(), JsepRunT()
        made: list[DeviceTensor] = []
        try:
            body.kernel, body.outputs = kernel, outputs
            body.inputs = [self._input(i, value, i in host, layout, made) for i, value in enumerate(inputs)]
            self._hold(kernel, body.inputs)
            answer = self._ask(body, layout.buffers, layout.size)
        finally:
            for tensor in made:
                tensor.free()
        page = self._page()
        return [
            OrtValue(DeviceTensor(page, out.gpuId, out.dtype, out.dims or [], device=self._device))
            for out in answer.body.outputs
        ]

    def _host_inputs(self, kernel: int, inputs: Sequence[Input]) -> set[int]:
        declared, _, _ = self._known(kernel)
        here = {i for i, value in enumerate(inputs) if not isinstance(value, OrtValue) or value.on_device is None}
        return {*declared.host, *(here & set(declared.host_if_constant))}

    def _known(self, kernel: int) -> tuple[Operator, Contract | None, Mapping[str, Any]]:
        if kernel not in self._kernels:
            raise InvalidArgument(f"there is no kernel {kernel}: it was released, or is another backend's")
        return self._kernels[kernel]

    def _hold(self, kernel: int, inputs: Sequence[TensorDescT]) -> None:
        """Check the inputs' sizes by the operator's contract, as the core does for nodes of sessions."""
        declared, rules, attributes = self._known(kernel)
        if rules is None or not attributes.keys().isdisjoint((X_COLUMNS, RESIDUAL_COLUMNS)):
            return
        sizes = [None if given.location == Location.none else given.dims or [] for given in inputs]
        broken = check(
            rules, sizes, {name: attributes.get(name, default) for name, default in rules.attributes.items()}
        )
        if broken is not None:
            raise RuntimeException(f"{declared.op_type}: {broken}")

    def _input(self, index: int, value: Input, host: bool, layout: Layout, made: list[DeviceTensor]) -> TensorDescT:
        name = str(index)
        if value is None:
            omitted = TensorDescT()
            omitted.name, omitted.location = name, Location.none
            return omitted
        tensor = value.on_device if isinstance(value, OrtValue) else None
        if tensor is not None and tensor.page is not self._page():
            raise InvalidArgument(f"input {index} is in another page: give its numpy()")
        if host or tensor is None:
            array = value.numpy() if isinstance(value, OrtValue) else np.asarray(value)
            if host:
                return pack(name, array, layout)
            tensor = DeviceTensor.empty(dtype_of(array), array.shape, self._device, self._live())
            made.append(tensor)
            tensor.upload(array)
        return on_gpu(name, tensor.dtype, tensor.shape, tensor.live(f"input {index}"))

    # --- ending

    def close(self) -> None:
        """Free the buffers and kernels of this object, and its share of the browser."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        for number in self._kernels:
            kernel = JsepReleaseKernelT()
            kernel.id = number
            _post(self._worker, kernel)
        for number in self._buffers:
            buffer = JsepFreeT()
            buffer.id = number
            _post(self._worker, buffer)
        soon(lambda: pool().release(lease))

    def __enter__(self) -> JsepBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_lease", None) is not None:
            self.close()

    def _live(self) -> Lease:
        if self._lease is None:
            raise PyOrtError("this JsepBackend is closed")
        return self._lease

    def _page(self) -> Page:
        self._live()
        return self._worker

    def _ask(self, body: Any, payload: Sequence[Any] = (), size: int | None = None) -> Any:
        total = sum(len(part) for part in payload) if size is None else size
        return loop_thread().call(self._page().request(body, list(payload), total))


def _post(page: Page, body: Any) -> None:
    soon(lambda: page.post(body))


def _plain(value: Any) -> Any:
    import onnx_ir as ir

    return ir.tensor(value) if isinstance(value, np.ndarray) else value

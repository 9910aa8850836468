"""The JSEP contract as messages: buffers and single kernels of a worker, without a session of the core."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import small_models

from py_ort.browser.loop import loop_thread
from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.plan.attributes import pack_attributes
from py_ort.schema.gen.DType import DType
from py_ort.schema.gen.JsepAlloc import JsepAllocT
from py_ort.schema.gen.JsepCopy import JsepCopyT
from py_ort.schema.gen.JsepCopyAsync import JsepCopyAsyncT
from py_ort.schema.gen.JsepCreateKernel import JsepCreateKernelT
from py_ort.schema.gen.JsepFree import JsepFreeT
from py_ort.schema.gen.JsepReleaseKernel import JsepReleaseKernelT
from py_ort.schema.gen.JsepRun import JsepRunT
from py_ort.wire import Layout, pack
from py_ort.wire.tensors import on_gpu

pytestmark = pytest.mark.browser


class Worker:
    """Sends one message after the other to the page of a session."""

    def __init__(self, session: Any) -> None:
        self._page = session._backend.lease.page

    def ask(self, body: Any, payload: bytes = b"", **fields: Any) -> Any:
        for name, value in fields.items():
            setattr(body, name, value)
        return loop_thread().call(self._page.request(body, [payload] if payload else [], len(payload)))

    def upload(self, array: np.ndarray) -> int:
        gpu_id = self.ask(JsepAllocT(), deviceId=0, size=array.nbytes).body.id
        self.ask(JsepCopyT(), array.tobytes(), src=0, dst=gpu_id, size=array.nbytes)
        return gpu_id

    def download(self, gpu_id: int, size: int) -> bytes:
        return bytes(self.ask(JsepCopyAsyncT(), src=gpu_id, size=size).payload)


@pytest.fixture
def worker(new_session) -> Worker:
    return Worker(new_session(small_models.add(), providers=["webgpu"]))


def test_bytes_go_to_the_gpu_and_come_back(worker: Worker) -> None:
    data = np.random.default_rng(0).integers(0, 256, 3_000_004, np.uint8)
    one, two = worker.upload(data), worker.ask(JsepAllocT(), deviceId=0, size=data.nbytes).body.id
    worker.ask(JsepCopyT(), src=one, dst=two, size=data.nbytes)
    assert worker.download(two, data.nbytes) == data.tobytes()
    worker.ask(JsepFreeT(), id=one)
    with pytest.raises(InvalidArgument, match=f"no GPU buffer {one}"):
        worker.download(one, 4)
    with pytest.raises(InvalidArgument, match="do not fit"):
        worker.download(two, data.nbytes + 16)
    worker.ask(JsepFreeT(), id=two)


def test_one_kernel_with_attributes_and_a_host_input(worker: Worker) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    attributes = pack_attributes([ir.AttrInt64("keepdims", 0)])
    kernel = worker.ask(
        JsepCreateKernelT(), deviceId=0, opType="ReduceMean", domain="", attributes=list(attributes)
    ).body.id
    gpu_id, layout = worker.upload(x), Layout()
    axes = pack("axes", np.array([1, -1]), layout)
    answer = worker.ask(
        JsepRunT(),
        b"".join(layout.buffers),
        kernel=kernel,
        inputs=[on_gpu("x", DType.float32, x.shape, gpu_id), axes],
        outputs=1,
    )
    (output,) = answer.body.outputs
    assert list(output.dims) == [2]
    mean = np.frombuffer(worker.download(output.gpuId, 8), np.float32)
    np.testing.assert_allclose(mean, x.mean((1, 2)), rtol=1e-5)
    worker.ask(JsepReleaseKernelT(), id=kernel)
    for buffer in (gpu_id, output.gpuId):
        worker.ask(JsepFreeT(), id=buffer)


def test_an_unknown_kernel_says_so(worker: Worker) -> None:
    with pytest.raises(NotImplemented, match="no WebGPU kernel for Frobnicate"):
        worker.ask(JsepCreateKernelT(), deviceId=0, opType="Frobnicate", domain="", attributes=[])

"""The JSEP contract as messages: buffers and single kernels of a worker, without a session of the core."""

import numpy as np
import pytest
import small_models
from shared_browser import BROWSER

from py_ort import OrtValue
from py_ort.exceptions import InvalidArgument, NotImplemented, PyOrtError, RuntimeException
from py_ort.runtime.jsep import JsepBackend


@pytest.fixture(scope="module")
def backend():
    with JsepBackend(browser=BROWSER) as made:
        yield made


def test_bytes_go_to_the_gpu_and_come_back(backend):
    data = np.random.default_rng(0).integers(0, 256, 3_000_004, np.uint8)
    one, two = backend.alloc(data.nbytes), backend.alloc(data.nbytes)
    backend.copy(data, one)
    backend.copy(one, two, data.nbytes)
    reads = [backend.copy_async(two, data.nbytes), backend.copy_async(two, 8)]
    assert [read.result() for read in reads] == [data.tobytes(), data.tobytes()[:8]]
    backend.free(one)
    with pytest.raises(InvalidArgument, match=f"no GPU buffer {one}"):
        backend.copy_async(one, 4).result()
    with pytest.raises(InvalidArgument, match="do not fit"):
        backend.copy_async(two, data.nbytes + 16).result()
    backend.free(two)


def test_new_buffers_are_zeros(backend):
    """Including those from a cache."""
    for _ in range(2):
        buffer = backend.alloc(1000)
        assert backend.copy_async(buffer, 1000).result() == bytes(1000)
        backend.copy(b"\xff" * 1000, buffer)
        backend.free(buffer)


def test_one_kernel_with_attributes_and_a_host_input(backend):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    kernel = backend.create_kernel("ReduceMean", {"keepdims": 0})
    (mean,) = backend.run(kernel, [x, np.array([1, -1])])
    assert mean.device_name() == "webgpu" and mean.shape() == [2]
    np.testing.assert_allclose(mean.numpy(), x.mean((1, 2)), rtol=1e-5)
    backend.release_kernel(kernel)
    with pytest.raises(InvalidArgument, match="released"):
        backend.run(kernel, [x])


def test_kernels_in_a_row(backend):
    """The next kernel, and a session of the same page, read an output in place."""
    split, add = backend.create_kernel("Split", {"axis": 1}), backend.create_kernel("Add")
    x = np.arange(12, dtype=np.int64).reshape(3, 4)
    left, right = backend.run(split, [x, np.array([1, 3])], outputs=2)
    (total,) = backend.run(add, [left, right])
    assert total.data_type() == "tensor(int64)"
    np.testing.assert_array_equal(total.numpy(), x[:, :1] + x[:, 1:])
    with pytest.raises(InvalidArgument, match="freed"):
        left.release()
        backend.run(add, [left, right])


def test_outputs_are_fed_to_sessions(backend, new_session):
    session = new_session(small_models.add(), providers=["webgpu"])
    (x,) = backend.run(backend.create_kernel("Neg"), [np.array([[1, 2, 3]], np.float32)])
    scale = np.array([1, 10, 100], np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x, "scale": scale})[0], [[0, 8, 97]])


@pytest.mark.parametrize(
    ("op_type", "shapes", "wrong"),
    [
        ("Conv", [(1, 2, 4, 4), (3, 2, 1, 1), (2,)], r"input 2 has the shape \[2\], not that of B\[M\]"),
        ("BatchNormalization", [(1, 4, 2), (4,), (4,), (4,), (3,)], r"input 4 has the shape \[3\]"),
    ],
)
def test_operands_of_sizes_that_do_not_fit(backend, op_type, shapes, wrong):
    kernel = backend.create_kernel(op_type)
    with pytest.raises(RuntimeException, match=wrong):
        backend.run(kernel, [np.ones(shape, np.float32) for shape in shapes])


def test_what_cannot_be(backend):
    with pytest.raises(NotImplemented, match="no WebGPU kernel for Frobnicate"):
        backend.create_kernel("Frobnicate")
    add = backend.create_kernel("Add")
    with pytest.raises(RuntimeException, match=r"\[2\].*\[3\]"):
        backend.run(add, [np.zeros(2, np.float32), np.zeros(3, np.float32)])
    with pytest.raises(InvalidArgument, match="on webgpu"):
        backend.run(add, [np.array(["a"]), np.array(["b"])])
    with pytest.raises(InvalidArgument, match="a size in bytes"):
        backend.copy(1, 2)
    elsewhere = JsepBackend({"deviceId": 2}, browser=BROWSER)
    negate = elsewhere.create_kernel("Neg")
    (far,) = elsewhere.run(negate, [np.ones(3, np.float32)])
    with pytest.raises(InvalidArgument, match="another GPU device"):
        backend.run(add, [far, far])
    far.release()
    (again,) = elsewhere.run(negate, [np.ones(3, np.float32)])  # the kernel keeps its device
    again.release()
    elsewhere.close()
    with pytest.raises(PyOrtError, match="closed"):
        elsewhere.alloc(16)


def test_closing_frees_what_was_made(new_session):
    """Buffers and the device of a context above 0 are freed; values that were returned stay until they are released."""
    session = new_session(small_models.add(), providers=["webgpu"])
    with JsepBackend({"deviceId": 5}, browser=BROWSER) as own:
        own.alloc(5000)
        (kept,) = own.run(own.create_kernel("Neg"), [np.ones(3, np.float32)])
        assert session.stats()["page"]["devices"]["5"]["tensors"] == 2
    assert session.stats()["page"]["devices"]["5"]["tensors"] == 1
    assert isinstance(kept, OrtValue)
    np.testing.assert_array_equal(kept.numpy(), [-1, -1, -1])
    kept.release()
    assert "5" not in session.stats()["page"]["devices"]

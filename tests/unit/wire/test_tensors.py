"""Tensors: every dtype of ONNX returns unchanged."""

import ml_dtypes
import numpy as np
import pytest

from py_ort.exceptions import ProtocolError
from py_ort.schema.gen.DType import DType
from py_ort.wire.tensors import NUMPY, PACKED, Layout, dtype_of, from_description, pack


def round_trip(array: np.ndarray) -> np.ndarray:
    layout = Layout()
    layout.add(b"before")
    description = pack("x", array, layout)
    payload = b"".join(bytes(part) + bytes(-len(part) % 16) for part in layout.buffers)
    assert len(payload) == layout.size and description.offset % 16 == 0
    return from_description(description, memoryview(bytearray(payload)))


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (1, 0, 4)], ids=str)
@pytest.mark.parametrize("dtype", sorted(set(NUMPY) - {DType.string_}), ids=lambda d: str(NUMPY[d]))
def test_round_trip(dtype, shape):
    count = int(np.prod(shape, dtype=int))
    array = (np.arange(count) % 2 + 1).astype(np.int8).astype(NUMPY[dtype]).reshape(shape)
    got = round_trip(array)
    assert got.dtype == array.dtype and got.shape == shape
    assert got.tobytes() == array.tobytes()


def test_every_dtype_of_the_schema_has_a_numpy_type():
    assert set(NUMPY) == {number for name, number in vars(DType).items() if name[0] != "_"} - {DType.undefined}


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_packed_types_take_their_bits(dtype):
    info = ml_dtypes.iinfo(getattr(ml_dtypes, dtype))
    array = np.array([info.min, info.max, 1, info.min, 1], getattr(ml_dtypes, dtype))
    layout = Layout()
    assert pack("x", array, layout).size == -(-5 // PACKED[dtype_of(array)])
    np.testing.assert_array_equal(round_trip(array).astype(int), array.astype(int))


def test_int4_has_the_first_element_in_the_low_bits():
    layout = Layout()
    pack("x", np.array([1, -1, 2], ml_dtypes.int4), layout)
    assert bytes(layout.buffers[0]) == b"\xf1\x02"


@pytest.mark.parametrize(
    "array", [np.array(["a", "", "žluť"]), np.array([["x"], ["yy"]], object), np.array(b"q")], ids=str
)
def test_strings(array):
    got = round_trip(array)
    assert got.dtype == object and got.shape == array.shape
    assert got.ravel().tolist() == [t.decode() if isinstance(t, bytes) else t for t in array.ravel().tolist()]


def test_views_and_byte_orders():
    array = np.arange(12, dtype=">i4").reshape(3, 4).T[::2]
    got = round_trip(array)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, array)


def test_contiguous_arrays_are_not_copied():
    array, layout = np.ones(1000, np.float32), Layout()
    pack("x", array, layout)
    assert np.shares_memory(np.frombuffer(layout.buffers[0], np.uint8), array)


def test_results_are_writable():
    got = round_trip(np.zeros(3, np.float32))
    got[0] = 1


def test_no_such_type():
    with pytest.raises(TypeError, match="datetime64"):
        pack("x", np.array(["2026-01-01"], "datetime64[D]"), Layout())


@pytest.mark.parametrize(
    "change", [{"dims": [3]}, {"size": 7}, {"offset": 64}, {"dtype": 200}, {"dtype": DType.float64}]
)
def test_wrong_descriptions(change):
    layout = Layout()
    description = pack("x", np.zeros(2, np.float32), layout)
    vars(description).update(change)
    with pytest.raises(ProtocolError):
        from_description(description, memoryview(bytearray(16)))

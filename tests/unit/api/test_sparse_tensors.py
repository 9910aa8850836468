"""Sparse tensors: the same members as onnxruntime's, and the same refusals."""

from __future__ import annotations

import numpy as np
import pytest

import py_ort
from py_ort import OrtDevice, OrtValue, SparseTensor
from py_ort.exceptions import InvalidArgument, NotImplemented

native = pytest.importorskip("onnxruntime")
VALUES = np.array([1, 2, 3], np.float32)
COO = {
    "flat": ([9, 9], VALUES, np.array([3, 5, 15])),
    "rows and columns": ([9, 9], VALUES, np.array([[0, 3], [0, 5], [1, 6]])),
    "rows and columns in one row": ([9, 9], VALUES, np.array([0, 3, 0, 5, 1, 6])),
    "int32": ([4, 9, 2], VALUES.astype(np.int8), np.array([3, 5, 15], np.int32)),
    "strings": ([9, 9], np.array(["x", "yy", ""]), np.array([3, 5, 15])),
    "none": ([2, 2], VALUES[:0], np.array([], np.int64)),
}
CSR = {
    "rows": ([3, 9], VALUES, np.array([1, 2, 1]), np.array([0, 1, 1, 3])),
    "strings": ([3, 9], np.array(["x", "yy", ""]), np.array([1, 2, 1]), np.array([0, 1, 1, 3])),
}
WRONG_COO = {
    "too few": ([9, 9], VALUES, np.array([1, 2])),
    "2-D values": ([9, 9], VALUES.reshape(3, 1), np.array([1, 2, 3])),
    "a list": ([9, 9], [1, 2, 3], np.array([1, 2, 3])),
}
WRONG_CSR = {
    "outer": ([9, 9], VALUES, np.array([1, 2, 3]), np.array([0, 3])),
    "inner": ([2, 9], VALUES, np.array([1, 2]), np.array([0, 1, 3])),
}


def coo(module, case):
    return module.SparseTensor.sparse_coo_from_numpy(*case, module.OrtDevice.make("cpu", 0))


def csr(module, case):
    return module.SparseTensor.sparse_csr_from_numpy(*case, module.OrtDevice.make("cpu", 0))


def seen(tensor, *places):
    for array in (tensor.values(), *places):
        assert tensor.values().dtype.kind in "OU" or not array.flags.writeable
    described = tensor.dense_shape(), tensor.data_type(), tensor.device_name(), int(tensor.format())
    return *described, tensor.values().tolist(), *(place.tolist() for place in places)


@pytest.mark.parametrize("case", COO)
def test_places(case):
    ours, theirs = coo(py_ort, COO[case]), coo(native, COO[case])
    assert seen(ours, ours.as_coo_view().indices()) == seen(theirs, theirs.as_coo_view().indices())
    with pytest.raises(RuntimeError):
        ours.as_csrc_view()


@pytest.mark.parametrize("case", CSR)
def test_rows(case):
    ours, theirs = csr(py_ort, CSR[case]), csr(native, CSR[case])
    views = [(tensor.as_csrc_view().inner(), tensor.as_csrc_view().outer()) for tensor in (ours, theirs)]
    assert seen(ours, *views[0]) == seen(theirs, *views[1])
    with pytest.raises(RuntimeError):
        ours.as_coo_view()


@pytest.mark.parametrize("case", [*WRONG_COO, *WRONG_CSR])
def test_parts_that_do_not_fit(case):
    make, case = (coo, WRONG_COO[case]) if case in WRONG_COO else (csr, WRONG_CSR[case])
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        make(native, case)
    with pytest.raises(theirs.type):
        make(py_ort, case)


def test_dense_forms():
    expected = np.zeros((9, 9), np.float32)
    expected[0, 3], expected[0, 5], expected[1, 6] = VALUES
    for case in list(COO)[:3]:
        np.testing.assert_array_equal(coo(py_ort, COO[case]).dense(), expected)
    rows = csr(py_ort, CSR["rows"]).dense()
    assert np.argwhere(rows).tolist() == [[0, 1], [2, 1], [2, 2]] and rows[2].tolist() == [0, 3, 2, *[0] * 6]
    np.testing.assert_array_equal(SparseTensor.of_dense(expected).dense(), expected)
    assert SparseTensor.of_dense(expected).as_coo_view().indices().tolist() == [3, 5, 15]


@pytest.mark.parametrize("indices", [np.array([1, 2, 99]), np.array([1, 2, -1]), np.array([[0, 1], [0, 2], [1, 9]])])
def test_places_outside_are_told_when_they_matter(indices):
    made = coo(py_ort, ([2, 9], VALUES, indices))
    with pytest.raises(InvalidArgument, match=r"shape \[2, 9\] has a value at place"):
        made.dense()


@pytest.mark.parametrize("outer", [[0, 1, 5], [1, 1, 3], [0, 4, 3]])
def test_rows_that_do_not_rise(outer):
    with pytest.raises(InvalidArgument, match="outer indices rise"):
        csr(py_ort, ([2, 9], VALUES, np.array([1, 2, 3]), np.array(outer))).dense()


def test_values_that_hold_one():
    tensor = coo(py_ort, COO["flat"])
    value = OrtValue.ort_value_from_sparse_tensor(tensor)
    assert value.as_sparse_tensor() is tensor and value.is_sparse_tensor() and not value.is_tensor()
    assert (value.data_type(), value.element_type(), value.shape()) == ("sparse_tensor(float)", 1, [9, 9])
    with pytest.raises(RuntimeError, match="is not a tensor"):
        value.numpy()
    with pytest.raises(RuntimeError, match="not a sparse tensor"):
        OrtValue(VALUES).as_sparse_tensor()


def test_what_there_is_not():
    with pytest.raises(NotImplemented):
        coo(py_ort, COO["flat"]).to_cuda(OrtDevice.make("cuda", 0))
    with pytest.raises(NotImplemented):
        SparseTensor.sparse_coo_from_numpy(*COO["flat"], OrtDevice.make("webgpu", 0))

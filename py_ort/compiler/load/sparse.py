"""Sparse constants become dense ones, as in onnxruntime: no kernel knows sparse tensors."""

from __future__ import annotations

import math

import numpy as np
import onnx

from py_ort.exceptions import InvalidGraph, NotImplemented, OutOfMemory

_INDEX_TYPES = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.INT16, onnx.TensorProto.INT8)
_LARGEST = 4 << 30  # bytes: the memory of a page


def dense_tensor(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    """Fill a dense tensor.

    Args:
        sparse: Values [n], and their places: [n] as places in the flat tensor, or [n, rank]. None is external data.

    Raises:
        InvalidGraph: Places, values and shape do not fit each other.
        NotImplemented: The values are strings.
        OutOfMemory: No page could hold the dense tensor.
    """
    name, dims = sparse.values.name, tuple(sparse.dims)
    if sparse.indices.data_type not in _INDEX_TYPES:
        raise _wrong(name, "has indices that are no signed integers")
    try:
        values, indices = onnx.numpy_helper.to_array(sparse.values), onnx.numpy_helper.to_array(sparse.indices)
    except Exception as e:  # as many types as there are ways to be wrong
        raise _wrong(name, f"cannot be read: {e}") from e
    if sparse.values.data_type == onnx.TensorProto.STRING:
        raise NotImplemented(f"the sparse tensor {name!r} holds strings, which is supported of dense ones only")
    if any(size < 0 for size in dims):
        raise _wrong(name, f"has the shape {list(dims)}")
    if math.prod(dims) * values.itemsize > _LARGEST:
        raise OutOfMemory(f"the sparse tensor {name!r} of shape {list(dims)} is too large to be made dense")
    if values.ndim != 1 or indices.shape not in ((len(values),), (len(values), len(dims))):
        raise _wrong(name, f"has values of shape {list(values.shape)} and indices of shape {list(indices.shape)}")
    flat = _flat(name, indices.astype(np.int64), dims)
    result = np.zeros(dims, values.dtype)
    result.reshape(-1)[flat] = values
    return onnx.numpy_helper.from_array(result, name)


def _flat(name: str, indices: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """Return the places in the flat tensor."""
    sizes = dims if indices.ndim == 2 else (math.prod(dims),)
    rows = indices.reshape(len(indices), len(sizes))
    outside = np.any((rows < 0) | (rows >= np.array(sizes, np.int64)), axis=1)
    if outside.any():
        raise _wrong(name, f"of shape {list(dims)} has an index {rows[outside][0].tolist()}")
    steps = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return rows @ np.array(steps, np.int64)


def _wrong(name: str, text: str) -> InvalidGraph:
    return InvalidGraph(f"the sparse tensor {name!r} {text}")

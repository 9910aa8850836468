"""onnxruntime's sparse tensors, for inputs and outputs of sparse types.

No kernel knows sparse tensors: the page receives their dense form.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from py_ort.boundary import public
from py_ort.exceptions import InvalidArgument, NotImplemented, OutOfMemory
from py_ort.runtime.values.ort_device import OrtDevice, device_kind

_LARGEST = 4 << 30  # bytes: what a page's memory can hold


class OrtSparseFormat(enum.IntEnum):
    """Formats of places."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


@dataclass(frozen=True, eq=False)
class SparseCooView:
    """Places of a tensor in COO format."""

    _indices: np.ndarray

    def indices(self) -> np.ndarray:
        """Return the place of each value: [n] in the flat tensor, or [n, 2] row and column."""
        return self._indices


@dataclass(frozen=True, eq=False)
class SparseCsrView:
    """Places of a tensor in CSR format."""

    _inner: np.ndarray
    _outer: np.ndarray

    def inner(self) -> np.ndarray:
        """Return the column of each value, [n]."""
        return self._inner

    def outer(self) -> np.ndarray:
        """Return the index of each row's first value, and the number of values: [rows + 1]."""
        return self._outer


@public
class SparseTensor:
    """A tensor of few values, on the CPU. Make one with `sparse_coo_from_numpy` or `sparse_csr_from_numpy`.

    Args:
        shape: Dimensions of the whole tensor.
        values: [n], of any dtype that ONNX has.
        places: The place of each value.

    Raises:
        InvalidArgument: The values are not 1-D, or a size is negative.
        TypeError: The values are not an array, or ONNX has no such type.
    """

    def __init__(self, shape: Sequence[int], values: np.ndarray, places: SparseCooView | SparseCsrView) -> None:
        if not isinstance(values, np.ndarray):
            raise TypeError(f"values are an array, not {type(values).__name__}")
        if values.ndim != 1:
            raise InvalidArgument(f"values are 1-D, not of shape {list(values.shape)}")
        self._shape = [int(size) for size in shape]
        if min(self._shape, default=0) < 0:
            raise InvalidArgument(f"a shape has no negative sizes: {self._shape}")
        self._values, self._places = _fixed(values), places
        self.element_type()  # raises if ONNX has no such type

    @staticmethod
    def sparse_coo_from_numpy(
        dense_shape: Sequence[int], values: np.ndarray, coo_indices: np.ndarray, ort_device: OrtDevice
    ) -> SparseTensor:
        """Return a tensor with values at these places.

        Args:
            dense_shape: Dimensions of the whole tensor.
            values: [n], of any dtype that ONNX has.
            coo_indices: Integers [n], places in the flat tensor, or [n, 2], rows and columns.
            ort_device: The CPU.

        Raises:
            InvalidArgument: They do not fit each other.
            NotImplemented: The device is not the CPU.
            TypeError: The values are not an array.
        """
        _check_device(ort_device)
        indices = _integers(coo_indices)
        made = SparseTensor(dense_shape, values, SparseCooView(indices))
        if indices.size == 2 * values.size and indices.ndim == 1 and values.size:
            made._places = SparseCooView(_fixed(indices.reshape(-1, 2)))
        elif indices.shape not in ((values.size,), (values.size, 2)):
            raise InvalidArgument(f"{values.size} values and indices of shape {list(indices.shape)} do not match")
        return made

    @staticmethod
    def sparse_csr_from_numpy(
        dense_shape: Sequence[int],
        values: np.ndarray,
        inner_indices: np.ndarray,
        outer_indices: np.ndarray,
        ort_device: OrtDevice,
    ) -> SparseTensor:
        """Return a tensor with values in rows.

        Args:
            dense_shape: Rows and columns.
            values: [n], of any dtype that ONNX has.
            inner_indices: Integers [n], columns.
            outer_indices: Integers [rows + 1]: the index of each row's first value, and the number of values.
            ort_device: The CPU.

        Raises:
            InvalidArgument: They do not fit each other.
            NotImplemented: The device is not the CPU.
            TypeError: The values are not an array.
        """
        _check_device(ort_device)
        made = SparseTensor(dense_shape, values, SparseCsrView(_integers(inner_indices), _integers(outer_indices)))
        view = made.as_csrc_view()
        if len(made._shape) != 2 or (view.inner().size, view.outer().size) != (values.size, made._shape[0] + 1):
            raise InvalidArgument(
                f"{values.size} values, {view.inner().size} inner and {view.outer().size} outer indices do not match "
                f"the shape {made._shape}"
            )
        return made

    @staticmethod
    def blocksparse_from_numpy(
        dense_shape: Sequence[int], values: np.ndarray, indices: np.ndarray, ort_device: OrtDevice
    ) -> NoReturn:
        """Refuse: no operator accepts blocks.

        Args:
            dense_shape: Dimensions of the whole tensor.
            values: The blocks' elements.
            indices: The blocks' places.
            ort_device: The CPU.

        Raises:
            NotImplemented: Always.
        """
        raise NotImplemented("sparse tensors of blocks are not supported: no operator takes one")

    @staticmethod
    def of_dense(array: np.ndarray) -> SparseTensor:
        """Return the nonzero values of an array, with their places in the flat array."""
        flat = array.reshape(-1)
        (places,) = np.nonzero(flat)
        return SparseTensor(array.shape, flat[places], SparseCooView(_fixed(places.astype(np.int64))))

    def dense(self) -> np.ndarray:
        """Return the whole tensor.

        Raises:
            InvalidArgument: A place is outside of the tensor.
            OutOfMemory: The tensor is too large for a page.
        """
        if math.prod(self._shape) * self._values.itemsize > _LARGEST:
            raise OutOfMemory(f"a sparse tensor of shape {self._shape} is too large to be made dense")
        flat = self._flat_places()
        outside = (flat < 0) | (flat >= math.prod(self._shape))
        if outside.any():
            raise InvalidArgument(f"a sparse tensor of shape {self._shape} has a value at place {flat[outside][0]}")
        result = np.zeros(self._shape, self._values.dtype)
        result.reshape(-1)[flat] = self._values
        return result

    def _flat_places(self) -> np.ndarray:
        view = self._places
        if isinstance(view, SparseCooView) and view.indices().ndim == 1:
            return view.indices()
        if len(self._shape) != 2:
            raise InvalidArgument(f"places in rows and columns are of a matrix, not of shape {self._shape}")
        if isinstance(view, SparseCooView):
            rows, columns = view.indices().T
        else:
            counts = np.diff(view.outer())
            if (counts < 0).any() or view.outer()[0] != 0 or counts.sum() != self._values.size:
                raise InvalidArgument(f"outer indices rise from 0 to {self._values.size}, the number of values")
            rows, columns = np.repeat(np.arange(self._shape[0]), counts), view.inner()
        wrong = (rows < 0) | (rows >= self._shape[0]) | (columns < 0) | (columns >= self._shape[1])
        if wrong.any():
            place = [int(rows[wrong][0]), int(columns[wrong][0])]
            raise InvalidArgument(f"a sparse tensor of shape {self._shape} has a value at place {place}")
        return rows * self._shape[1] + columns

    def values(self) -> np.ndarray:
        """Return the values, [n], read-only."""
        return self._values

    def as_coo_view(self) -> SparseCooView:
        """Return the places of a tensor in COO format.

        Raises:
            InvalidArgument: The tensor has another format.
        """
        if not isinstance(self._places, SparseCooView):
            raise InvalidArgument("this sparse tensor is in CSR format: as_csrc_view() has its places")
        return self._places

    def as_csrc_view(self) -> SparseCsrView:
        """Return the places of a tensor in CSR format.

        Raises:
            InvalidArgument: The tensor has another format.
        """
        if not isinstance(self._places, SparseCsrView):
            raise InvalidArgument("this sparse tensor is in COO format: as_coo_view() has its places")
        return self._places

    def as_blocksparse_view(self) -> NoReturn:
        """Refuse: there are no tensors of blocks.

        Raises:
            InvalidArgument: Always.
        """
        raise InvalidArgument(f"this sparse tensor is in {self.format().name}: it has no blocks")

    # Names of onnxruntime's native class.
    get_coo_data, get_csrc_data, get_blocksparse_data = as_coo_view, as_csrc_view, as_blocksparse_view

    def to_cuda(self, ort_device: OrtDevice) -> NoReturn:
        """Refuse: there is no CUDA here.

        Raises:
            NotImplemented: Always.
        """
        raise NotImplemented("there is no CUDA in a browser: sparse tensors stay on the CPU")

    def format(self) -> OrtSparseFormat:
        """Return the format of the places."""
        coo = isinstance(self._places, SparseCooView)
        return OrtSparseFormat.ORT_SPARSE_COO if coo else OrtSparseFormat.ORT_SPARSE_CSRC

    def dense_shape(self) -> list[int]:
        """Return the shape of the whole tensor."""
        return list(self._shape)

    def element_type(self) -> int:
        """Return ONNX's number of the values' type."""
        from py_ort.wire.tensors import dtype_of

        return dtype_of(self._values)

    def data_type(self) -> str:
        """Return the type as in "sparse_tensor(float)"."""
        from py_ort.wire.tensors import TYPE_NAMES

        return f"sparse_tensor({TYPE_NAMES[self.element_type()]})"

    def device_name(self) -> str:
        """Return "cpu"."""
        return "cpu"


def _check_device(device: OrtDevice) -> None:
    if device_kind(device) != "cpu":
        raise NotImplemented("sparse tensors are on the CPU")


def _fixed(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _integers(indices: np.ndarray) -> np.ndarray:
    return _fixed(np.asarray(indices, np.int64))

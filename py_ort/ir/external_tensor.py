"""Constants in files of external data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.wire.parts import Stored, whole
from py_ort.wire.tensors import from_bytes


class ExternalTensor(ir.Tensor):
    """A tensor whose bytes are a part of a file; `py_ort.compiler.load.external` makes it.

    Attributes:
        location: The file's name, as the model has it.
        offset: Where its bytes begin there.
        contents: Its bytes, in memory or still in the file.
    """

    __slots__ = ("contents", "location", "offset")

    def __init__(
        self, name: str, dtype: ir.DataType, dims: Sequence[int], location: str, offset: int, contents: Stored
    ) -> None:
        super().__init__(_Elements(contents, int(dtype), tuple(dims)), dtype, shape=ir.Shape(dims), name=name)
        self.location, self.offset, self.contents = location, offset, contents

    def tobytes(self) -> bytes:
        """Return the bytes in the file's form."""
        return bytes(whole(self.contents))


class _Elements:
    """Bytes in a file that become an array at the first access, with 4-bit integers unpacked."""

    def __init__(self, contents: Stored, dtype: int, dims: tuple[int, ...]) -> None:
        self._contents, self._dtype, self._dims = contents, dtype, dims

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = from_bytes(whole(self._contents), self._dtype, self._dims)
        return array if dtype is None else array.astype(dtype, copy=bool(copy))

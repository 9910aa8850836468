"""Resizing of bytes: linear interpolation in floats, whose results are truncated like casts."""

from collections.abc import Callable
from typing import Any

import numpy as np
from case import Case, r

Array = np.ndarray[Any, np.dtype[Any]]


def _of_floats(mode: str) -> Callable[..., Array]:
    """Twice the size: all weights are quarters, so that floats are exact."""

    def expected(x: Array, scales: Array) -> Array:
        arrays = [x.astype(np.float32), None, scales]
        (resized,) = Case("Resize", arrays, {"mode": mode}).expectation(arrays)
        return np.trunc(resized).astype(x.dtype)

    return lambda x, _, scales: expected(x, scales)


def _bytes(dtype: str, *shape: int) -> Any:
    return r(*shape, dtype=dtype, low=-128 if dtype == "int8" else 0, high=128 if dtype == "int8" else 256)


CASES = [
    Case("Resize", [_bytes(dtype, *shape), None, np.array(scales, np.float32)], {"mode": mode}, _of_floats(mode))
    for mode in ("nearest", "linear")
    for dtype in ("uint8", "int8")
    # Rows that are shorter and longer than vectors, and channels last.
    for shape, scales in (
        ((2, 3, 5, 7), (1, 1, 2, 2)),
        ((1, 2, 3, 37), (1, 1, 2, 2)),
        ((1, 5, 4, 3), (1, 2, 2, 1)),
        ((1, 3, 4, 21), (1, 2, 2, 1)),
    )
]

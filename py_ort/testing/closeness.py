"""Comparison of outputs with expected ones, relative to the largest number and by type."""

from __future__ import annotations

from typing import Any

import numpy as np

from py_ort.testing.case import Tolerance, difference

#: Tolerances of outputs whose elements have 16 bits or fewer, and of all others.
_COARSE, _FINE = 1e-2, 1e-3


def closeness(got: Any, wanted: Any, tolerance: float | None = None, steps: int = 0) -> tuple[str, float]:
    """Compare an output with the expected one.

    Args:
        got: An array of any dtype, or a list, dict or None, as `InferenceSession.run` gives them.
        wanted: The same of the reference.
        tolerance: Passes: |got - wanted| <= tolerance * |wanted| + tolerance / 10 * max |wanted|. Default: 0.001,
            and 0.01 for elements of 16 bits or fewer.
        steps: Largest difference of integers that passes. Booleans and strings must be equal.

    Returns:
        The difference in words ("": none), and the largest difference of an element, as a part of the largest
        number that is wanted.
    """
    part, scale = _part(got, wanted)
    allowed = tolerance if tolerance is not None else _COARSE if _few_bits(wanted) else _FINE
    return difference(got, wanted, Tolerance(allowed, allowed / 10 * scale, steps=steps)), part


def _few_bits(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.itemsize <= 2 and value.dtype.kind not in "iub"


def _part(got: Any, wanted: Any) -> tuple[float, float]:
    """Return the largest difference, as a part of the largest number that is wanted, and that number."""
    if isinstance(wanted, (list, tuple)) and isinstance(got, (list, tuple)) and len(got) == len(wanted):
        parts = [_part(a, b) for a, b in zip(got, wanted, strict=True)]
        return max((part for part, _ in parts), default=0.0), max((scale for _, scale in parts), default=0.0)
    a, b = np.asarray(got), np.asarray(wanted)
    if b.dtype.kind in "OUScb" or a.shape != b.shape or not b.size:
        return 0.0, 0.0
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(x) & np.isfinite(y)
    scale = float(np.max(np.abs(y), where=np.isfinite(y), initial=0.0))
    with np.errstate(invalid="ignore"):
        off = float(np.max(np.abs(x - y), where=finite, initial=0.0))
    return (off / scale if scale else off), scale

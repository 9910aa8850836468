"""Which elements of an axis a Slice takes."""

from __future__ import annotations


def sliced(size: int, start: int, end: int, step: int) -> range:
    """Return the positions along an axis of `size` elements, as ONNX counts them.

    Python's slices differ: ONNX takes a start before the first element to be the first one, in both directions.

    Raises:
        ValueError: The step is 0.
    """
    if step > 0:
        low, high = 0, size
    else:
        low, high = -1, size - 1
    start, end = (n + size if n < 0 else n for n in (start, end))
    return range(min(max(start, min(0, high)), high), min(max(end, low), high), step)

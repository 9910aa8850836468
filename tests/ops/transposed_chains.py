"""Transposed chains of elementwise operators: on WebGPU."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from case import Case, r

Array = np.ndarray[Any, np.dtype[Any]]


def _moved(program: str, inputs: Sequence[Any], perm: Sequence[int], expected: Callable[..., Array]) -> Case:
    def compute(*arrays: Array) -> Array:
        return np.ascontiguousarray(np.transpose(expected(*arrays), perm)).astype(np.float32)

    attributes = {"program": program, "perm": list(perm)}
    return Case("ElementwiseChain", inputs, attributes, compute, domain="com.ms.internal", tolerance="tight")


def _both(x: Array, z: Array) -> Array:
    return x * z + x


CASES = [
    *(
        _moved("Abs 0", [r(2, *shape)], (0, *(axis + 1 for axis in perm)), np.abs)
        for shape in ((3, 5, 7), (3, 8, 12), (4, 4, 8), (1, 6, 5))
        for perm in ((1, 2, 0), (2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0), (0, 1, 2))
    ),
    *(
        _moved("Mul 0 1;Add 2 0", [r(2, 5, 8, 12), r(*other)], perm, _both)
        for other in ((12,), (8, 1), (5, 1, 1), (1, 5, 1, 12), (2, 1, 8, 1), (), (2, 5, 8, 12))
        for perm in ((0, 2, 3, 1), (3, 1, 0, 2), (0, 2, 1, 3))
    ),
    _moved("Mul 0 1;Add 2 0", [r(5, 1), r(3, 1, 7)], (2, 0, 1), _both),
    _moved("Abs 0", [r(0, 4)], (1, 0), np.abs),
    _moved("Abs 0", [r(9)], (0,), np.abs),
    _moved("Abs 0", [r(70, 90)], (1, 0), np.abs),
    _moved("Abs 0", [r(300, 260)], (1, 0), np.abs),
]

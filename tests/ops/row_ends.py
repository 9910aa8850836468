"""Softmax and normalizations with epilogues, which passes give to those of WebGPU."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from activations import ACTIVATIONS
from case import Case, r
from epilogues import epilogue

Array = np.ndarray[Any, np.dtype[Any]]
ENDS: Sequence[tuple[str, list[float], float | None]] = [
    ("LeakyRelu", [0.2], 0.25),
    ("Softplus", [], None),
    ("FakeQuantize", [0.125, 100], None),
]


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


def _normalized(x: Array, scale: Array, bias: Array) -> Array:
    centered = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
    return np.asarray(centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * scale + bias)


def _root(x: Array, scale: Array) -> Array:
    return np.asarray(x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5) * scale)


def _ended(op: str, inputs: Sequence[Any], attributes: Any, rows: Callable[..., Array], end: int, **more: Any) -> Case:
    function, numbers, offset = ENDS[end]

    def fake(y: Array) -> Array:
        scale, zero = numbers
        return np.clip(np.round(y / scale), -zero, 255 - zero) * scale

    def expected(*given: Array) -> Any:
        made = rows(*given)
        ended = fake(made) if function == "FakeQuantize" else ACTIVATIONS[function][1](made)
        first = (ended + (offset or 0)).astype(np.float32)
        return (first, (given[0] + given[1]).astype(np.float32)) if op.startswith("Skip") else first

    ends = epilogue(function, numbers, offset=offset)
    return Case(op, inputs, {**attributes, **ends}, expected, tolerance="normal", name=function, **more)


CASES = [
    case
    for end in range(len(ENDS))
    for case in (
        *(
            _ended("Softmax", [r(*shape, low=-8, high=8)], {"axis": axis}, lambda x, axis=axis: _softmax(x, axis), end)
            for shape, axis in (((3, 7), -1), ((2, 8, 16), -1), ((2, 5, 3, 8), 1), ((1, 1000), 1))
        ),
        *(_ended("LayerNormalization", [r(2, 5, n), r(n), r(n)], {}, _normalized, end) for n in (7, 64, 1000)),
        _ended("RMSNormalization", [r(2, 5, 24), r(24)], {}, _root, end),
    )
]

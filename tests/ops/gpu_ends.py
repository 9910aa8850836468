"""Ends that only WebGPU's kernels support: of Softmax and normalizations, and late biases of products."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from activations import ACTIVATIONS
from case import MICROSOFT, Case, r
from epilogues import epilogue

from py_ort.ir.epilogue import Epilogue

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

    def expected(*given: Array) -> Array:
        made = rows(*given)
        ended = fake(made) if function == "FakeQuantize" else ACTIVATIONS[function][1](made)
        return (ended + (offset or 0)).astype(np.float32)

    ends = epilogue(function, numbers, offset=offset)
    return Case(op, inputs, {**attributes, **ends}, expected, tolerance="normal", name=function, **more)


def _biased(name: str, inputs: Sequence[Any], attributes: Any, weights: Callable[..., Array]) -> Case:
    """A product that is doubled if negative; then its bias and, if there is one, its residual are added."""
    op, places = ("MatMulNBits", (5, 7)) if "bits" in attributes else ("MatMul", (2, 3))
    residual = len(inputs) > places[1]
    ends = Epilogue().then("LeakyRelu", [2]).plus_bias()
    ends = ends.plus_residual() if residual else ends
    ends = ends.then("LeakyRelu", [0.5])

    def expected(*given: Array) -> Array:
        y = given[0].astype(np.float64) @ weights(*given)
        y = np.where(y < 0, 2 * y, y) + given[places[0]]
        y = y + given[places[1]] if residual else y
        return np.where(y < 0, 0.5 * y, y).astype(np.float32)

    domain = MICROSOFT if op == "MatMulNBits" else ""
    more = {**attributes, "epilogue": ends.program}
    return Case(op, inputs, more, expected, domain=domain, tolerance="loose", name=name)


def _matrices(m: int, k: int, n: int, batch: int, residual: bool) -> Case:
    inputs = [r(batch, m, k), r(k, n) if batch == 1 else r(batch, k, n), r(n), *([r(batch, m, n)] if residual else [])]
    return _biased("late bias", inputs, {}, lambda a, b, *_: b)


def _bytes(m: int, k: int, n: int, residual: bool) -> Case:
    inputs = [r(1, m, k), r(n, k // 32, 32, dtype="uint8", high=256), r(n * k // 32, low=0.001, high=0.01)]
    inputs += [None, None, r(n), *([None, r(1, m, n)] if residual else [])]

    def weights(_: Array, b: Array, scales: Array, *__: Array) -> Array:
        return np.asarray(((b.astype(np.float64) - 128) * scales.reshape(n, -1, 1)).reshape(n, k).T)

    return _biased("late bias", inputs, {"K": k, "N": n, "bits": 8, "block_size": 32}, weights)


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
        _ended(
            "SkipLayerNormalization",
            [r(2, 5, 24), r(2, 5, 24), r(24), r(24)],
            {"epsilon": 1e-5},
            lambda x, skip, scale, shift: _normalized(x + skip, scale, shift),
            end,
            domain=MICROSOFT,
        ),
    )
] + [
    case
    for residual in (False, True)
    for case in (
        *(
            _matrices(*sizes, residual)
            for sizes in ((1, 64, 100, 1), (9, 16, 12, 2), (33, 20, 7, 1), (40, 600, 64, 1), (70, 64, 68, 3))
        ),
        *(_bytes(*sizes, residual) for sizes in ((1, 64, 100), (3, 96, 20), (5, 32, 7), (40, 64, 68))),
    )
]

"""Products with weights of few bits, with passes' additions: a normalization, an epilogue, a gate, a residual."""

from collections.abc import Callable
from typing import Any

import numpy as np
from case import MICROSOFT, Case, r

from py_ort.ir.epilogue import Epilogue

Array = np.ndarray[Any, np.dtype[Any]]
_EPSILON = 1e-3


def _weights(b: Array, scales: Array, zeros: Array | None, k: int, bits: int, block: int) -> Array:
    """[n, k] of floats."""
    each = 8 // bits
    numbers = (b[..., None] >> (np.arange(each) * bits) & (2**bits - 1)).reshape(len(b), -1).astype(np.float64)
    middles: Array = np.full((len(b), numbers.shape[1] // block), 2.0 ** (bits - 1))
    if zeros is not None:
        unpacked = (zeros.reshape(len(b), -1)[..., None] >> (np.arange(each) * bits)) & (2**bits - 1)
        middles = unpacked.reshape(len(b), -1)[:, : middles.shape[1]]
    each_block = [np.repeat(part, block, 1) for part in (middles, scales.reshape(len(b), -1))]
    return ((numbers - each_block[0]) * each_block[1])[:, :k]


def _expected(k: int, bits: int, block: int, gated: bool, ended: bool) -> Callable[..., Array]:
    def compute(*given: Array | None) -> Array:
        a, b, scales, zeros, _, bias, norm, residual = [*given, *[None] * 8][:8]
        assert a is not None and b is not None and scales is not None
        rows = a.astype(np.float64)
        if norm is not None:
            rows = rows / np.sqrt((rows**2).mean(-1, keepdims=True) + _EPSILON) * norm
        y = rows @ _weights(b, scales, zeros, k, bits, block).T
        y = y if bias is None else y + bias
        if gated:
            gate, up = np.split(y, 2, axis=-1)
            y = gate / (1 + np.exp(-gate)) * up
        if ended:
            y = 3 * np.tanh(y) + 0.5
        return (y if residual is None else y + residual).astype(np.float32)

    return compute


def _product(
    name: str, m: int, k: int, n: int, bits: int = 4, block: int = 32, *, zeros: bool = False, bias: bool = False,
    norm: bool = False, gate: bool = False, epilogue: bool = False, residual: bool = False,
) -> Case:  # fmt: skip
    blocks = -(-k // block)
    u8 = {"dtype": "uint8", "high": 256}
    inputs = [r(1, m, k), r(n, blocks, block * bits // 8, **u8), r(n * blocks, low=0.001, high=0.01)]
    inputs += [
        r(n * -(-blocks * bits // 8), **u8) if zeros else None,
        None,
        r(n) if bias else None,
        r(k) if norm else None,
        r(1, m, n // 2 if gate else n) if residual else None,
    ]
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    if norm:
        attributes["norm_epsilon"] = _EPSILON
    if gate:
        attributes["gate"] = Epilogue().then("Swish").program
    if epilogue:
        attributes["epilogue"] = Epilogue().then("ScaledTanh", [3, 1]).plus(0.5).program
    expected = _expected(k, bits, block, gate, epilogue)
    return Case("MatMulNBits", inputs, attributes, expected, domain=MICROSOFT, tolerance="normal", name=name)


#: One row, a few and many, for three kernels; k with and without whole loads, short and long.
_SHAPES = {(1, 512, 4, 32): "gate,residual,norm", (1, 72, 4, 16): "", (5, 520, 8, 16): "", (20, 96, 4, 32): ""}
_OFTEN = (
    "norm and gate",
    "norm and bias and residual",
    "gate and bias and zeros",
    "bias and epilogue",
    "epilogue and residual",
)

CASES = [
    *(
        _product(f"{m} rows of {k}, {what}", m, k, 24, bits, block, **dict.fromkeys(what.split(" and "), True))
        for (m, k, bits, block), more in _SHAPES.items()
        for what in (*filter(None, more.split(",")), *_OFTEN)
    ),
    _product("2 bits of all", 1, 1024, 24, 2, 128, zeros=True, bias=True, norm=True, gate=True),
]

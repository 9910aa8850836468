"""Products with the experts to which each row is assigned."""

from typing import Any

import numpy as np
from case import Case, r

EXPERTS, TOKENS = 4, 9


def _choices(each: int) -> np.ndarray:
    """No row uses the third expert; the others have few rows or many."""
    drawn = np.random.default_rng(each).choice([0, 1, 1, 1, 1, 3], (TOKENS, each))
    return drawn.astype(np.int32)


def _exact_rows(rows: int, k: int, block: int) -> np.ndarray:
    """Rows that the kernel for bytes in blocks, which rounds each block to 8 bits on wasm, leaves unchanged."""
    drawn = np.random.default_rng(k).integers(-127, 128, (rows, k // block, block)).astype(np.float32)
    drawn[:, :, 0] = 127
    return drawn.reshape(rows, k) / 64


def _unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    values = np.stack([packed >> shift & (2**bits - 1) for shift in range(0, 8, bits)], -1)
    return values.reshape(*packed.shape[:-1], -1)[..., :count].astype(np.float32)


def _case(k: int, n: int, each: int, bits: int = 0, block: int = 0, *, zeros: bool = False, rows: int = TOKENS) -> Case:
    blocks = k // block if block else 1

    def expected(x: Any, choices: Any, w: Any, scales: Any = None, packed_zeros: Any = None, bias: Any = None) -> Any:
        if bits:
            zero = np.float32(2 ** (bits - 1))
            if packed_zeros is not None:
                zero = _unpacked(packed_zeros, bits, blocks if block else n).reshape(EXPERTS, n, blocks)
                zero = np.repeat(zero, k // blocks, -1)
            w = (_unpacked(w, bits, k) - zero) * np.repeat(scales.reshape(EXPERTS, n, blocks), k // blocks, -1)
        spread = np.repeat(x, choices.size // x.shape[0], 0).reshape(*choices.shape, k)
        y = np.einsum("tck,tcnk->tcn", spread.astype(np.float64), w[choices])
        return (y if bias is None else y + bias[choices]).astype(np.float32)

    x = _exact_rows(rows, k, block) if bits == 8 and block else r(rows, k)
    inputs: list[Any] = [x, _choices(each), r(EXPERTS, n, k)]
    if bits:
        inputs[2] = r(EXPERTS, n, k * bits // 8, dtype="uint8", low=0, high=256)
        inputs.append(r(EXPERTS, n, blocks, low=0.01, high=0.1) if block else r(EXPERTS, n, low=0.01, high=0.1))
        shape = (n, -(-blocks * bits // 8)) if block else (-(-n * bits // 8),)
        inputs.append(r(EXPERTS, *shape, dtype="uint8", low=0, high=256) if zeros else None)
    else:
        inputs += [None, None]
    inputs.append(r(EXPERTS, n) if zeros or not bits else None)
    while inputs[-1] is None:
        inputs.pop()
    return Case(
        "ExpertMatMul",
        inputs,
        {"bits": bits, "block_size": block},
        expected=expected,
        tolerance="normal",
        domain="com.ms.internal",
    )


CASES = [
    _case(64, 24, 2),
    _case(13, 5, 1),
    _case(16, 8, 3, rows=3 * TOKENS),
    *(_case(64, 12, 2, bits, block, zeros=zeros) for bits in (2, 4, 8) for block in (0, 32) for zeros in (False, True)),
    _case(20, 7, 2, 4, zeros=True),
    _case(2048, 3, 2, 4, 64),
]

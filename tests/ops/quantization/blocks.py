"""com.microsoft's operators on weights of few bits, quantized in blocks."""

import numpy as np
from case import MICROSOFT, Case, r

U8 = {"dtype": "uint8", "high": 256}


def matmul(m: int, k: int, n: int, block: int, bits: int, zeros: str = "", bias: bool = False) -> Case:
    blocks = -(-k // block)
    zero = {"": None, "packed": r(n * -(-blocks * bits // 8), **U8), "float": r(n * blocks, low=0, high=15)}[zeros]
    inputs = [r(m, k), r(n, blocks, block * bits // 8, **U8), r(n * blocks, low=0.01, high=0.1), zero]
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    more = [None, r(n)] if bias else []
    return Case("MatMulNBits", [*inputs, *more], attributes, domain=MICROSOFT, tolerance="normal")


def gather(shape: tuple[int, ...], axis: int, blocked: int, zeros: bool, bits: int = 4) -> Case:
    scales = [-(-d // 16) if a == blocked else d for a, d in enumerate(shape)]
    packed = [*shape[:-1], shape[-1] * bits // 8]
    indices = np.array([[1, 0], [2, 1]], np.int64)
    zero = [r(*scales[:-1], -(-scales[-1] * bits // 8), **U8)] if zeros else []
    attributes = {"gather_axis": axis, "quantize_axis": blocked, "block_size": 16, "bits": bits}
    inputs = [r(*packed, **U8), indices, r(*scales, low=0.01, high=0.1), *zero]
    return Case("GatherBlockQuantized", inputs, attributes, domain=MICROSOFT)


CASES = [
    *(matmul(m, 72, 20, 16, bits, zeros) for m in (1, 5, 33) for bits in (4, 8) for zeros in ("", "packed")),
    matmul(2, 64, 12, 32, 2),
    matmul(5, 70, 20, 16, 4),
    matmul(1, 71, 20, 16, 8, "packed"),
    matmul(3, 96, 12, 32, 4, "float"),
    matmul(1, 160, 40, 32, 4, "packed", bias=True),
    matmul(20, 160, 40, 32, 4, "packed", bias=True),
    # Whole teams divide k.
    *(matmul(1, 1024, 24, 32, bits, "packed") for bits in (2, 4, 8)),
    matmul(5, 1024, 24, 32, 4, "packed"),
    matmul(1, 1032, 20, 256, 4, "packed"),
    matmul(1, 1024, 24, 16, 4, "float"),
    matmul(1, 512, 16400, 128, 4),
    *(gather((5, 32), 0, 1, zeros) for zeros in (False, True)),
    gather((5, 3, 40), 0, 2, True),
    gather((5, 32), 0, 1, True, bits=8),
]

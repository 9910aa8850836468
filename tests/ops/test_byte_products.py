"""Products of rows of 8 bits, of bytes on GPUs that multiply these, here on a software adapter.

Against whole numbers: rounding as DynamicQuantizeLinear's, exact sums, one multiplication and one sum of floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case import MICROSOFT

pytestmark = pytest.mark.browser

_MIDDLE = 128
_SHADER = "byte_product"


def _quantized(a: np.ndarray) -> tuple[np.ndarray, np.float32, int]:
    """Rows as DynamicQuantizeLinear rounds them: bytes, scale, zero point."""
    low, high = np.float32(min(a.min(), 0)), np.float32(max(a.max(), 0))
    scale = np.float32((high - low) / np.float32(255)) if high > low else np.float32(1)
    zero = int(np.clip(np.rint(-low / scale), 0, 255))
    return np.clip(np.rint(a / scale) + zero, 0, 255).astype(np.int64), scale, zero


def _case(seed: int, m: int, k: int, n: int) -> tuple[list[Any], np.ndarray, dict[str, int]]:
    """Inputs of MatMulNBits, what comes out, and its attributes."""
    rng = np.random.default_rng(seed)
    block = int(rng.choice([16, 32, 128]))
    blocks = -(-k // block)
    a = rng.normal(rng.normal(), 2, (m, k)).astype(np.float32)
    if seed % 3 == 1:
        a = np.abs(a)
    elif seed % 3 == 2:
        a = rng.choice(np.array([-3, 0, 5], np.float32), (m, k))
    weights = rng.choice([0, 255], (n, k)) if seed % 2 else rng.integers(0, 256, (n, k))
    packed = rng.integers(0, 256, (n, blocks * block)).astype(np.uint8)  # beyond k is anything
    packed[:, :k] = weights
    scales = rng.random(n).astype(np.float32) / 100
    zeros = rng.integers(0, 256, n) if seed % 4 < 2 else np.full(n, _MIDDLE)
    bias = rng.normal(size=n).astype(np.float32) if seed % 5 < 3 else None
    residual = rng.normal(size=(m, n)).astype(np.float32) if seed % 5 < 2 else None
    inputs = [
        a,
        packed.reshape(n, blocks, block),
        np.repeat(scales, blocks).reshape(n, blocks),
        np.repeat(zeros, blocks).astype(np.uint8).reshape(n, blocks) if seed % 4 < 2 else None,
        None,
        bias,
        None,
        residual,
    ]
    while inputs[-1] is None:
        inputs.pop()
    rows, scale, zero = _quantized(a)
    sums = (rows - zero) @ (weights - zeros[:, None]).T
    expected = sums.astype(np.float32) * (scale * scales)
    for more in (bias, residual):
        expected = expected if more is None else expected + more
    return inputs, expected, {"K": k, "N": n, "bits": 8, "block_size": block, "a_dynamic": 1}


#: One for each tile, and what does not fill it; rows as for many of a model's.
SIZES = [(16, 4, 4), (17, 20, 36), (33, 132, 40), (128, 384, 384), (140, 256, 700), (530, 64, 1028), (128, 1536, 64)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_on_a_gpu(kernel_page: Any, size: tuple[int, int, int], seed: int) -> None:
    inputs, expected, attributes = _case(seed + sum(size), *size)
    result = kernel_page.run("MatMulNBits", inputs, attributes, domain=MICROSOFT, hardware=True)
    assert any(name.startswith(_SHADER) for name in result.shaders), result.shaders
    np.testing.assert_allclose(result.outputs[0], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("size", "variant"),
    [
        ((16, 24, 32), {}),
        ((5, 24, 32), {"hardware": True}),
        ((20, 22, 32), {"hardware": True}),
        ((20, 24, 30), {"hardware": True}),
        ((20, 24, 32), {"hardware": True, "traits": {"packedDot": False}}),
    ],
    ids=["software", "few rows", "k", "n", "a device without"],
)
def test_by_floats(kernel_page: Any, size: tuple[int, int, int], variant: dict[str, Any]) -> None:
    for seed in range(4):
        inputs, expected, attributes = _case(seed, *size)
        result = kernel_page.run("MatMulNBits", inputs, attributes, domain=MICROSOFT, **variant)
        assert not any(name.startswith(_SHADER) for name in result.shaders), result.shaders
        np.testing.assert_allclose(result.outputs[0], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())

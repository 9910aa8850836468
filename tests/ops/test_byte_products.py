"""Products of rows of 8 bits, as bytes on GPUs that multiply these, here on a software adapter.

Compared with whole numbers: rounding as in DynamicQuantizeLinear, exact sums, one multiplication and one sum of floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case import MICROSOFT
from channels_last import NHWC

from py_ort.ir.epilogue import Epilogue

pytestmark = pytest.mark.browser

_MIDDLE = 128
_SHADER = "_bytes"


def _quantized(a: np.ndarray) -> tuple[np.ndarray, np.float32, int]:
    """Rows rounded like DynamicQuantizeLinear: bytes, scale, zero point."""
    low, high = np.float32(min(a.min(), 0)), np.float32(max(a.max(), 0))
    scale = np.float32((high - low) / np.float32(255)) if high > low else np.float32(1)
    zero = int(np.clip(np.rint(-low / scale), 0, 255))
    return np.clip(np.rint(a / scale) + zero, 0, 255).astype(np.int64), scale, zero


def _case(seed: int, m: int, k: int, n: int) -> tuple[list[Any], np.ndarray, dict[str, int]]:
    """Inputs of MatMulNBits, the result, and its attributes."""
    rng = np.random.default_rng(seed)
    block = int(rng.choice([16, 32, 128]))
    blocks = -(-k // block)
    a = rng.normal(rng.normal(), 2, (m, k)).astype(np.float32)
    if seed % 3 == 1:
        a = np.abs(a)
    elif seed % 3 == 2:
        a = rng.choice(np.array([-3, 0, 5], np.float32), (m, k))
    weights = rng.choice([0, 255], (n, k)) if seed % 2 else rng.integers(0, 256, (n, k))
    packed = rng.integers(0, 256, (n, blocks * block)).astype(np.uint8)  # bytes beyond k are arbitrary
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


#: One for each tile, and some that do not fill it; as many rows as in models.
SIZES = [(16, 4, 4), (17, 20, 36), (33, 132, 40), (128, 384, 384), (140, 256, 700), (530, 64, 1028), (128, 1536, 64)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
def test_on_a_gpu(kernel_page: Any, size: tuple[int, int, int], seed: int) -> None:
    inputs, expected, attributes = _case(seed + sum(size), *size)
    result = kernel_page.run("MatMulNBits", inputs, attributes, domain=MICROSOFT, hardware=True)
    assert any(name.endswith(_SHADER) for name in result.shaders), result.shaders
    np.testing.assert_allclose(result.outputs[0], expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("size", "variant"),
    [
        ((16, 24, 32), {}),
        ((5, 24, 32), {"hardware": True}),
        ((20, 22, 32), {"hardware": True}),
        ((20, 24, 30), {"hardware": True}),
        ((20, 24, 32), {"hardware": True, "traits": {"bytesFrom": 1e999}}),
    ],
    ids=["software", "few rows", "k", "n", "a device without"],
)
def test_by_floats(kernel_page: Any, size: tuple[int, int, int], variant: dict[str, Any]) -> None:
    for seed in range(4):
        inputs, expected, attributes = _case(seed, *size)
        result = kernel_page.run("MatMulNBits", inputs, attributes, domain=MICROSOFT, **variant)
        assert not any(name.endswith(_SHADER) for name in result.shaders), result.shaders
        np.testing.assert_allclose(result.outputs[0], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


#: Height, width, channels, outputs, window, stride, padding, dilation.
WINDOWS = {
    "a pixel": (9, 7, 64, 68, 1, 1, 0, 1),
    "a pixel, read too rarely": (9, 7, 64, 60, 1, 1, 0, 1),
    "a pixel, many": (40, 40, 16, 128, 1, 1, 0, 1),
    "three by three": (12, 9, 32, 40, 3, 1, 1, 1),
    "a stride": (15, 14, 20, 64, 3, 2, 1, 1),
    "far apart": (11, 13, 8, 12, 3, 1, 2, 2),
    "deep": (7, 7, 128, 32, 3, 1, 1, 1),
    "every other pixel": (10, 10, 32, 256, 1, 2, 0, 1),
}


def _convolved(x: np.ndarray, w: np.ndarray, stride: int, padding: int, dilation: int) -> np.ndarray:
    """[n, h, w, c] and [kh, kw, c, m] of whole numbers; padded with 0."""
    x = np.pad(x, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, [dilation * (size - 1) + 1 for size in w.shape[:2]], (1, 2))
    windows = windows[:, ::stride, ::stride, :, ::dilation, ::dilation]
    return np.einsum("nhwcij,ijcm->nhwm", windows.astype(np.float64), w.astype(np.float64))


@pytest.mark.parametrize("kind", ["bias", "residual", "rounded", "columns"])
@pytest.mark.parametrize("size", WINDOWS.values(), ids=WINDOWS)
def test_convolutions_on_a_gpu(kernel_page: Any, size: tuple[int, ...], kind: str) -> None:
    height, width, channels, outputs, window, stride, padding, dilation = size
    rng = np.random.default_rng(sum(size))
    zero, scale = int(rng.choice([0, 3, 128, 255])), np.float32(0.03)
    integers = rng.integers(0, 256, (2, height, width, channels)) - zero
    weights = rng.choice([-127, 127, 1], (window, window, channels, outputs))
    scales = (rng.random(outputs) / 50 + 0.001).astype(np.float32)
    sums = _convolved(integers, weights, stride, padding, dilation)
    bias = rng.normal(size=outputs).astype(np.float32)
    expected = (sums.astype(np.float32) * (scale * scales) + bias).astype(np.float32)
    residual = rng.normal(size=expected.shape).astype(np.float32) if kind == "residual" else None
    epilogue = Epilogue().plus_residual() if kind == "residual" else Epilogue()
    if kind == "rounded":
        epilogue = epilogue.then("FakeQuantize", [np.abs(expected).max() / 100, 120])
    attributes = {
        "kernel_shape": [window] * 2,
        "strides": [stride] * 2,
        "pads": [padding] * 4,
        "dilations": [dilation] * 2,
        "weight_layout": "HWIO",
        "a_scale": float(scale),
        "a_zero": float(zero),
        **({"epilogue": epilogue.program} if epilogue else {}),
    }
    inputs = [integers * scale, weights * scales, bias, residual, scales]
    inputs = [None if each is None else each.astype(np.float32) for each in inputs]
    before = np.full((*expected.shape[:3], outputs + 16), 7, np.float32)
    if kind == "columns":  # of wider tensors, the second of which exists
        attributes |= {"x_columns": [4, channels], "y_columns": [8, outputs + 16], "into": len(inputs)}
        inputs = [np.pad(inputs[0], [(0, 0)] * 3 + [(4, 8)], constant_values=9), *inputs[1:], before]
    result = kernel_page.run("Conv", inputs, attributes, domain=NHWC, hardware=True, traits={"bytesFrom": 0})
    assert any(_SHADER in name for name in result.shaders) is (sums.size * window**2 >= 64 * integers[..., 0].size), (
        result.shaders
    )
    found = result.outputs[0]
    if kind == "columns":
        np.testing.assert_array_equal(np.delete(found, np.s_[8 : 8 + outputs], -1), before[..., :16])
        found = found[..., 8 : 8 + outputs]
    if residual is not None:
        expected = expected + residual
    if kind == "rounded":
        step = np.abs(expected).max() / 100
        np.testing.assert_allclose(found / step, np.rint(found / step), atol=1e-4)
        assert np.abs(found - np.clip(expected, -120 * step, 135 * step)).max() <= 0.501 * step
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def _block_case(
    seed: int, m: int, k: int, n: int, bits: int, block: int
) -> tuple[list[Any], np.ndarray, dict[str, int]]:
    """Inputs of MatMulNBits with accuracy_level 4, the result, and its attributes."""
    rng = np.random.default_rng(seed)
    blocks, middle = k // block, 1 << (bits - 1)
    a = rng.normal(size=(m, k)).astype(np.float32)
    a[0, :block] = 0
    weights = rng.integers(0, 1 << bits, (n, k))
    zeros = rng.integers(0, 1 << bits, (n, blocks)) if bits < 8 and seed % 2 else np.full((n, blocks), middle)
    scales = rng.random((n, blocks)).astype(np.float32) / 100
    bias = rng.normal(size=n).astype(np.float32)
    residual = rng.normal(size=(m, n)).astype(np.float32) if seed % 3 == 0 else None
    inputs = [a, packed_bits(weights, bits).reshape(n, blocks, -1), scales, None, None, bias, None, residual]
    if seed % 2 and bits < 8:
        inputs[3] = packed_bits(np.pad(zeros, ((0, 0), (0, -blocks % (8 // bits)))), bits)
    while inputs[-1] is None:
        inputs.pop()
    grouped = a.reshape(m, blocks, block)
    largest = np.abs(grouped).max(-1, keepdims=True)
    inverse = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest > 0)
    rows = np.rint(grouped * inverse)
    whole = weights.reshape(n, blocks, block) - zeros[..., None]
    sums = np.einsum("mbk,nbk->mnb", rows.astype(np.float64), whole.astype(np.float64))
    expected = np.einsum("mnb,mb,nb->mn", sums, largest[..., 0].astype(np.float64) / 127, scales.astype(np.float64))
    expected = expected + bias + (0 if residual is None else residual)
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": 4}
    return inputs, expected, attributes


def packed_bits(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Along the last axis, the lowest bits of a byte first."""
    each = 8 // bits
    shifted = numbers.astype(np.uint8).reshape(*numbers.shape[:-1], -1, each) << (
        np.arange(each, dtype=np.uint8) * bits
    )
    return np.bitwise_or.reduce(shifted, -1).astype(np.uint8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(
    ("m", "k", "n", "block"), [(16, 32, 8, 32), (33, 256, 100, 64), (130, 384, 1028, 32), (70, 512, 36, 256)]
)
def test_blocks_on_a_gpu(kernel_page: Any, m: int, k: int, n: int, block: int, bits: int) -> None:
    """Rows are rounded block by block, as natively with accuracy_level 4."""
    for seed in range(3):
        inputs, expected, attributes = _block_case(seed + m, m, k, n, bits, block)
        result = kernel_page.run("MatMulNBits", inputs, attributes, domain=MICROSOFT, hardware=True)
        assert any(name.endswith(_SHADER) for name in result.shaders), result.shaders
        np.testing.assert_allclose(result.outputs[0], expected, rtol=1e-5, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize(("k", "block", "more"), [(48, 16, {}), (80, 32, {}), (64, 32, {"accuracy_level": 0})])
def test_blocks_by_floats(kernel_page: Any, k: int, block: int, more: dict[str, int]) -> None:
    """Short blocks, an incomplete one, or rows that must not be rounded."""
    rng = np.random.default_rng(k)
    blocks = -(-k // block)
    inputs = [
        rng.normal(size=(20, k)).astype(np.float32),
        rng.integers(0, 256, (8, blocks, block // 2)).astype(np.uint8),
    ]
    inputs.append(rng.random((8, blocks)).astype(np.float32))
    attributes = {"K": k, "N": 8, "bits": 4, "block_size": block, "accuracy_level": 4, **more}
    result = kernel_page.run("MatMulNBits", inputs, attributes, domain=MICROSOFT, hardware=True)
    assert not any(name.endswith(_SHADER) for name in result.shaders), result.shaders

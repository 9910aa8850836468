"""The weight quantizers of `onnxruntime.capi._pybind_state`, which `onnxruntime.quantization` calls.

They write into arrays that the caller made; layouts are those of com.microsoft's MatMulNBits and MatMulBnb4, and of
ai.onnx's DequantizeLinear with blocks. B is [K, N], in `blocks` = ceil(K / block_size) blocks of rows. Codes of float32
are onnxruntime's; of float16 some differ by one, because it rounds on the way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "quantize_matmul_2bits",
    "quantize_matmul_4bits",
    "quantize_matmul_8bits",
    "quantize_matmul_bnb4",
    "quantize_qdq_matmul_4bits",
]

#: Magnitudes up to which bitsandbytes' FP4 has each of these codes, as parts of the largest one of a block.
_FP4_BOUNDS = np.array([0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333], np.float32)
_FP4_CODES = np.array([0, 1, 6, 7, 4, 5, 2, 3], np.uint8)
#: Values of the codes of bitsandbytes' NF4.
_NF4 = np.array(
    [
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ],
    np.float32,
)


class _Blocks(NamedTuple):
    """Blocks of a matrix: codes [N, blocks, block_size] uint8, scales [N, blocks] float32, zero_points [N, blocks]."""

    codes: np.ndarray
    scales: np.ndarray
    zero_points: np.ndarray


def _quantize(matrix: np.ndarray, block_size: int, bits: int, symmetric: bool) -> _Blocks:
    rows, columns = matrix.shape
    blocks, most, middle = -(-rows // block_size), 2**bits - 1, 2 ** (bits - 1)
    values = np.zeros((columns, blocks * block_size), np.float32)
    values[:, :rows] = matrix.astype(np.float32).T
    values = values.reshape(columns, blocks, block_size)
    low, high = np.minimum(values.min(-1), 0), np.maximum(values.max(-1), 0)
    if symmetric:
        scales = np.where(np.abs(low) > np.abs(high), low, high) / np.float32(-middle)
        zero_points = np.full(scales.shape, middle, np.uint8)
    else:
        scales = (high - low) / np.float32(most)
        quotients = np.divide(-low, scales, out=np.zeros_like(low), where=scales != 0)
        zero_points = np.clip(np.round(quotients), 0, most).astype(np.uint8)
    factors = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales != 0)
    scaled = values * factors[..., None] + zero_points[..., None].astype(np.float32)
    codes = np.clip(np.floor(scaled + np.float32(0.5)), 0, most).astype(np.uint8)
    return _Blocks(codes, scales, zero_points)


def _pack(codes: np.ndarray, bits: int, fill: int = 0) -> np.ndarray:
    """Put codes of the last axis into bytes, the first in the lowest bits; the rest of the last byte is `fill`."""
    count = 8 // bits
    left = -codes.shape[-1] % count
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, left)], constant_values=fill)
    grouped = codes.reshape(*codes.shape[:-1], -1, count)
    return np.bitwise_or.reduce(grouped << (np.arange(count, dtype=np.uint8) * np.uint8(bits)), axis=-1, dtype=np.uint8)


def _quantize_matmul(
    bits: int,
    packed: np.ndarray,
    matrix: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    symmetric: bool,
) -> None:
    made = _quantize(matrix, block_size, bits, symmetric)
    packed[...] = _pack(made.codes, bits).reshape(packed.shape)
    scales[...] = made.scales.reshape(scales.shape)
    if not symmetric:
        zero_points[...] = _pack(made.zero_points, bits, fill=2 ** (bits - 1)).reshape(zero_points.shape)


def quantize_matmul_2bits(
    packed: np.ndarray,
    matrix: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    columns: int,
    rows: int,
    symmetric: bool,
) -> None:
    """Quantize B for MatMulNBits with bits = 2; see `quantize_matmul_4bits`."""
    _quantize_matmul(2, packed, matrix, scales, zero_points, block_size, symmetric)


def quantize_matmul_4bits(
    packed: np.ndarray,
    matrix: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    columns: int,
    rows: int,
    symmetric: bool,
) -> None:
    """Quantize B for com.microsoft's MatMulNBits.

    Args:
        packed: Written: uint8 [N, blocks, block_size * bits / 8], the first code in the lowest bits.
        matrix: B, float32 or float16 [K, N].
        scales: Written: [N, blocks], in B's type.
        zero_points: Written unless symmetric: uint8 [N, ceil(blocks * bits / 8)].
        block_size: Rows of a block.
        columns: N.
        rows: K.
        symmetric: True if zero points are the middle code.
    """
    _quantize_matmul(4, packed, matrix, scales, zero_points, block_size, symmetric)


def quantize_matmul_8bits(
    packed: np.ndarray,
    matrix: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    columns: int,
    rows: int,
    symmetric: bool,
) -> None:
    """Quantize B for MatMulNBits with bits = 8; see `quantize_matmul_4bits`."""
    _quantize_matmul(8, packed, matrix, scales, zero_points, block_size, symmetric)


def quantize_qdq_matmul_4bits(
    packed: np.ndarray,
    matrix: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    columns: int,
    rows: int,
    symmetric: bool,
) -> bool:
    """Quantize B for DequantizeLinear with blocks along axis 0: int4 if symmetric, else uint4.

    Args:
        packed: Written: uint8 [ceil(K * N / 2)], B's order.
        matrix: B, float32 or float16 [K, N].
        scales: Written: [blocks, N], in B's type.
        zero_points: Written unless symmetric: uint8 [ceil(blocks * N / 2)].
        block_size: Rows of a block.
        columns: N.
        rows: K.
        symmetric: True if codes are int4 with zero points of 0.

    Returns:
        True if codes are signed.
    """
    made = _quantize(matrix, block_size, 4, symmetric)
    codes = made.codes.reshape(columns, -1)[:, :rows].T
    packed[...] = _pack((codes ^ 8 if symmetric else codes).reshape(-1), 4).reshape(packed.shape)
    scales[...] = made.scales.T.reshape(scales.shape)
    if not symmetric:
        zero_points[...] = _pack(made.zero_points.T.reshape(-1), 4).reshape(zero_points.shape)
    return bool(symmetric)


def quantize_matmul_bnb4(
    packed: np.ndarray,
    matrix: np.ndarray,
    absmax: np.ndarray,
    block_size: int,
    quant_type: int,
    columns: int,
    rows: int,
) -> None:
    """Quantize B, transposed and flat, for com.microsoft's MatMulBnb4.

    Args:
        packed: Written: uint8 [ceil(K * N / 2)], the first code in the highest bits.
        matrix: B transposed, float32 or float16 [N, K].
        absmax: Written: the largest magnitude of each block, [ceil(K * N / block_size)], in B's type.
        block_size: Elements of a block.
        quant_type: 0 for FP4, 1 for NF4.
        columns: N.
        rows: K.
    """
    count = matrix.size
    flat = np.zeros(-(-count // block_size) * block_size, np.float32)
    flat[:count] = matrix.astype(np.float32).reshape(-1)
    values = flat.reshape(-1, block_size)
    largest = np.abs(values).max(-1)
    scaled = values * np.divide(np.float32(1), largest, out=np.zeros_like(largest), where=largest != 0)[:, None]
    scaled = np.pad(scaled.reshape(-1)[:count], (0, count % 2))
    codes = (_nearest_nf4(scaled) if quant_type else _nearest_fp4(scaled)).reshape(-1, 2)
    packed[...] = (codes[:, 0] << 4 | codes[:, 1]).reshape(packed.shape)
    absmax[...] = largest.reshape(absmax.shape)


def _nearest_nf4(values: np.ndarray) -> np.ndarray:
    return np.searchsorted((_NF4[1:] + _NF4[:-1]) / 2, values).astype(np.uint8)


def _nearest_fp4(values: np.ndarray) -> np.ndarray:
    """Sign and magnitude: the highest bit is the sign."""
    codes = _FP4_CODES[np.searchsorted(_FP4_BOUNDS, np.abs(values))]
    return codes | (values < 0).astype(np.uint8) << 3

"""The weight quantizers that onnxruntime.quantization calls, against onnxruntime's own."""

from __future__ import annotations

import numpy as np
import pytest

from py_ort.compat import block_quantization

native = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
SIZES = [(64, 6, 32), (70, 5, 16), (33, 2, 32)]


def _matrix(rows, columns, dtype):
    matrix = np.random.default_rng(rows).normal(size=(rows, columns)).astype(dtype)
    matrix[: rows // 2, 0] = np.abs(matrix[: rows // 2, 0])
    matrix[:, 1] = 0
    return matrix


def _both(name, arrays, *rest):
    """Call ours and theirs with separate outputs; return the outputs of both, and the calls' results."""
    results = []
    for where in (block_quantization, native):
        outputs = [array.copy() for array in arrays]
        returned = getattr(where, name)(outputs[0], rest[0], *outputs[1:], *rest[1:])
        results.append((outputs, returned))
    return results


def _codes(packed, bits):
    return packed[..., None] >> (np.arange(8 // bits, dtype=np.uint8) * bits) & (2**bits - 1)


def _same_codes(ours, theirs, dtype):
    apart = np.abs(ours.astype(int) - theirs.astype(int))
    if dtype is np.float32:
        assert not apart.any()
    else:  # theirs rounds to float16 in between
        assert apart.max() <= 1 and np.count_nonzero(apart) <= 0.02 * apart.size


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("rows", "columns", "block"), SIZES)
def test_matmul_nbits(bits, dtype, symmetric, rows, columns, block):
    blocks, per_byte = -(-rows // block), 8 // bits
    made = [
        np.zeros((columns, blocks, block * bits // 8), np.uint8),
        np.zeros((columns, blocks), dtype),
        np.zeros((columns, -(-blocks // per_byte)), np.uint8),
    ]
    arguments = (_matrix(rows, columns, dtype), block, columns, rows, symmetric)
    (ours, _), (theirs, _) = _both(f"quantize_matmul_{bits}bits", made, *arguments)
    assert np.array_equal(ours[1], theirs[1])
    assert np.array_equal(ours[2], theirs[2])
    kept = [_codes(packed, bits).reshape(columns, -1)[:, :rows] for packed in (ours[0], theirs[0])]
    _same_codes(*kept, dtype)  # theirs leaves the bytes after them undefined


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("rows", "columns", "block"), SIZES)
def test_dequantize_linear_with_blocks(dtype, symmetric, rows, columns, block):
    blocks = -(-rows // block)
    made = [
        np.zeros(-(-rows * columns // 2), np.uint8),
        np.zeros((blocks, columns), dtype),
        np.zeros(-(-blocks * columns // 2), np.uint8),
    ]
    arguments = (_matrix(rows, columns, dtype), block, columns, rows, symmetric)
    (ours, signed), (theirs, expected) = _both("quantize_qdq_matmul_4bits", made, *arguments)
    assert signed == expected
    assert np.array_equal(ours[1], theirs[1])
    assert np.array_equal(ours[2], theirs[2])
    middle = 8 if symmetric else 0
    _same_codes(_codes(ours[0], 4) ^ middle, _codes(theirs[0], 4) ^ middle, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("rows", "columns", "block"), [*SIZES, (73, 123, 16)])
def test_matmul_bnb4(kind, dtype, rows, columns, block):
    count = rows * columns
    made = [np.zeros((count + 1) // 2, np.uint8), np.zeros(-(-count // block), dtype)]
    transposed = np.ascontiguousarray(_matrix(rows, columns, dtype).T)
    (ours, _), (theirs, _) = _both("quantize_matmul_bnb4", made, transposed, block, kind, columns, rows)
    for mine, other in zip(ours, theirs, strict=True):
        assert np.array_equal(mine, other)

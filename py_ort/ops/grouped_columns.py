"""MatMulNBits whose columns belong to groups in any order (g_idx)."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import InvalidGraph, NotImplemented
from py_ort.ir.block_products import BIAS, GROUPS, OP_TYPE, SCALES, WEIGHTS, ZEROS
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, attributes_of, input_at
from py_ort.ir.operators import MICROSOFT, lowering


@lowering(OP_TYPE, domain=MICROSOFT)
def grouped_columns(node: ir.Node, build: Builder) -> Any:
    """Columns of one group side by side, as in blocks; where groups are not as long as blocks, a product of floats.

    A group has one scale and zero point. Native onnxruntime ignores zero points of bytes here (it takes 8), and regards
    those of floats; other engines regard both, as do we.
    """
    given = {i: input_at(node, i) for i in (WEIGHTS, SCALES, ZEROS, GROUPS)}
    if given[GROUPS] is None:
        return None
    where: dict[str, Any] = {"node": node.name or "", "op_type": node.op_type, "domain": node.domain}
    held = {i: None if value is None else array(value) for i, value in given.items()}
    if any(held[i] is None for i, value in given.items() if value is not None):
        raise NotImplemented("MatMulNBits with g_idx: make B, scales, zero_points and g_idx initializers", **where)
    rows, columns, bits, size = (attribute(node, name, 4) for name in ("K", "N", "bits", "block_size"))
    blocks = -(-rows // size)
    groups: np.ndarray = held[GROUPS].reshape(-1)  # type: ignore[union-attr]
    if groups.size not in (rows, blocks * size) or groups.min() < 0 or groups.max() >= blocks:
        raise InvalidGraph(f"g_idx needs {rows} numbers from 0 to {blocks - 1}, one for each row of B", **where)
    groups = groups[:rows]
    weights = _unpacked(held[WEIGHTS].reshape(columns, -1), bits)[:, :rows]  # type: ignore[union-attr]
    scales: np.ndarray = held[SCALES].reshape(columns, blocks)  # type: ignore[union-attr]
    zeros = held[ZEROS]
    if zeros is None:
        zeros = np.full((columns, blocks), 1 << bits - 1, np.uint8)
    elif zeros.dtype == np.uint8:
        zeros = _unpacked(zeros.reshape(columns, -1), bits)[:, :blocks]
    else:
        zeros = zeros.reshape(columns, blocks)

    lengths = np.bincount(groups, minlength=blocks)
    order = np.argsort(-lengths, kind="stable")  # a group that is shorter comes last, as the shorter block does
    bias = input_at(node, BIAS)
    if np.array_equal(lengths[order], np.diff([*range(0, rows, size), rows])):
        places = np.argsort(np.argsort(order)[groups], kind="stable")
        padded = np.pad(weights[:, places], [(0, 0), (0, blocks * size - rows)])
        zeros = zeros[:, order]
        if zeros.dtype == np.uint8:
            zeros = _packed(np.pad(zeros, [(0, 0), (0, -blocks * bits % 8 // bits)]), bits)
        # Floats are not rounded before a product with g_idx, whatever the accuracy.
        kept = {name: value for name, value in attributes_of(node).items() if name != "accuracy_level"}
        return build.op(
            OP_TYPE,
            build.op("Gather", node.inputs[0], places, axis=-1),
            _packed(padded, bits).reshape(columns, blocks, -1),
            scales[:, order],
            None if held[ZEROS] is None else zeros,
            *([None, bias] if bias is not None else []),
            domain=MICROSOFT,
            **kept,
        )
    floats = (weights.astype(scales.dtype) - zeros.astype(scales.dtype)[:, groups]) * scales[:, groups]
    product = build.op("MatMul", node.inputs[0], np.ascontiguousarray(floats.T))
    return product if bias is None else build.op("Add", product, bias)


def _unpacked(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of each byte, low bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (numbers[..., None] >> shifts & (1 << bits) - 1).astype(np.uint8).reshape(len(numbers), -1)


def _packed(numbers: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(numbers.reshape(len(numbers), -1, 8 // bits) << shifts, -1)

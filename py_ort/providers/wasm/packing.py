"""Panels: eight columns of a matrix side by side, the order of the CPU kernels' inner loops.

8-bit panels are int8. The kernels read them where they were loaded, except on machines that add products of bytes in 16
bits: there they use a copy with smaller weights (integer_excess.cc).
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from py_ort.ir.graph import attribute
from py_ort.providers.packing import Packed, Packing, hwio, scaled_matrix
from py_ort.schema.dialect import OUT_CHANNELS, PACKED_K, PACKED_N, PANEL8, PANEL8X4, WEIGHT_LAYOUT

PANEL = 8
#: Rows of 8-bit panels that are next to each other.
FOUR = 4


def panels(matrix: np.ndarray) -> np.ndarray:
    """[…, K, N] → […, ceil(N / 8), K, 8], zero-filled."""
    *lead, rows, columns = matrix.shape
    count = -(-columns // PANEL)
    padded = matrix
    if columns % PANEL:
        padded = np.zeros((*lead, rows, count * PANEL), matrix.dtype)
        padded[..., :columns] = matrix
    return np.moveaxis(padded.reshape(*lead, rows, count, PANEL), -2, -3)


def conv_panels(w: np.ndarray, group: int) -> np.ndarray:
    """Conv: [M, C / group, kh, kw] → [group, ceil(M / group / 8), kh·kw·C / group, 8]."""
    out, inner, kh, kw = w.shape
    split = w.reshape(group, out // group, inner, kh, kw)
    return panels(split.transpose(0, 3, 4, 2, 1).reshape(group, kh * kw * inner, out // group))


def transposed_panels(w: np.ndarray, group: int) -> np.ndarray:
    """ConvTranspose: [C, M / group, kh, kw] → [group, ceil(kh·kw·M / group / 8), C / group, 8]."""
    inputs, each, kh, kw = w.shape
    split = w.reshape(group, inputs // group, each, kh, kw)
    return panels(split.transpose(0, 1, 3, 4, 2).reshape(group, inputs // group, kh * kw * each))


def signed(values: np.ndarray) -> np.ndarray:
    """Bytes as int8: uint8 minus 128."""
    return values if values.dtype == np.int8 else (values ^ 0x80).view(np.int8)


def integer_panels(matrix: np.ndarray) -> np.ndarray:
    """[…, K, N] of 8-bit integers → […, ceil(N / 8), ceil(K / 4), 8, 4] of int8, zero-filled; uint8 minus 128."""
    *lead, rows, columns = matrix.shape
    fours, count = -(-rows // FOUR), -(-columns // PANEL)
    padded = np.zeros((*lead, fours * FOUR, count * PANEL), np.int8)
    padded[..., :rows, :columns] = signed(matrix)
    axes = (*range(len(lead)), *(len(lead) + axis for axis in (2, 0, 3, 1)))
    return padded.reshape(*lead, fours, FOUR, count, PANEL).transpose(axes)


def integer_conv_panels(w: np.ndarray, group: int) -> np.ndarray:
    """[M, C / group, k…] of 8-bit integers → [group, ceil(M / group / 8), ceil(taps·C / group / 4), 8, 4] of int8."""
    out, inner = w.shape[:2]
    split = w.reshape(group, out // group, inner, -1)
    return integer_panels(split.transpose(0, 3, 2, 1).reshape(group, -1, out // group))


class Panels(Packing):
    """See docs/internals.md, section 3."""

    def convolution(self, node: ir.Node, shape: tuple[int, ...]) -> Packed:
        """Panels of each group; HWIO for depthwise convolutions, which are not products."""
        group = attribute(node, "group", 1)
        if node.op_type == "ConvTranspose":
            inputs, each, kh, kw = shape
            packed = (group, -(-kh * kw * each // PANEL), inputs // group, PANEL)
            attributes = {WEIGHT_LAYOUT: PANEL8, OUT_CHANNELS: each * group}
            return Packed(f"transposed_panel8/{group}", lambda w: transposed_panels(w, group), packed, attributes)
        out, inner, kh, kw = shape
        if inner == 1 and out == group:
            return hwio(shape)
        packed = (group, -(-(out // group) // PANEL), kh * kw * inner, PANEL)
        attributes = {WEIGHT_LAYOUT: PANEL8, OUT_CHANNELS: out}
        return Packed(f"panel8/{group}", lambda w: conv_panels(w, group), packed, attributes)

    def product(self, node: ir.Node, right: ir.Value, shape: tuple[int, ...]) -> Packed | None:
        """Panels; of float16 even if the product computes in float32: a session widens its weights when it is made."""
        transposed, alpha, matrix = scaled_matrix(node)
        left = node.inputs[0]
        wide = left is not None and left.dtype == ir.DataType.FLOAT
        if right.dtype != ir.DataType.FLOAT and (alpha != 1.0 or not wide):
            return None
        rows, columns = shape[::-1] if transposed else shape
        packed = (-(-columns // PANEL), rows, PANEL)
        kind = f"panel8/{transposed}/{alpha}"
        return Packed(kind, lambda w: panels(matrix(w)), packed, {PACKED_N: columns})

    def integers(self, node: ir.Node, shape: tuple[int, ...]) -> Packed | None:
        """Panels of four rows; a convolution's like its products', except depthwise."""
        if len(shape) > 2 and attribute(node, "kernel_shape"):
            group, (out, inner, *kernel) = attribute(node, "group", 1), shape
            depthwise = inner == 1 and out == group
            if out % group or depthwise or list(attribute(node, "kernel_shape")) != kernel:
                return None
            packed = (group, -(-(out // group) // PANEL), -(-math.prod(kernel) * inner // FOUR), PANEL, FOUR)
            attributes = {WEIGHT_LAYOUT: PANEL8X4, OUT_CHANNELS: out, PACKED_K: inner}
            convert = lambda w: integer_conv_panels(w, group)  # noqa: E731
            return Packed(f"panel8x4/{group}", convert, packed, attributes, ir.DataType.INT8)
        if len(shape) != 2:
            return None
        rows, columns = shape
        matrix = (-(-columns // PANEL), -(-rows // FOUR), PANEL, FOUR)
        attributes = {PACKED_N: columns, PACKED_K: rows}
        return Packed(PANEL8X4, integer_panels, matrix, attributes, ir.DataType.INT8)

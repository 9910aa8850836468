"""Orders of constant weights' elements, and each provider's choice for its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.graph import attribute
from py_ort.schema.dialect import HWIO, OUT_CHANNELS, WEIGHT_LAYOUT


@dataclass(frozen=True)
class Packed:
    """A weight in another order.

    Attributes:
        kind: Distinguishes it from other orders of the same weight.
        convert: Converts the elements from the weight's order.
        shape: Shape of the result of `convert`.
        attributes: Attributes of the node afterwards.
        dtype: Dtype of the elements, if it changes.
    """

    kind: str
    convert: Callable[[np.ndarray], np.ndarray]
    shape: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dtype: ir.DataType | None = None


class Packing:
    """The orders that the kernels of a provider read; this class changes none. None: the weight stays unchanged."""

    def convolution(self, node: ir.Node, shape: tuple[int, ...]) -> Packed | None:
        """Return the order for a Conv or ConvTranspose of two axes, channels last; `shape` is the weight's in ONNX."""
        return None

    def product(self, node: ir.Node, right: ir.Value, shape: tuple[int, ...]) -> Packed | None:
        """Return the order for a MatMul or Gemm with a right operand of `shape`: not transposed, with alpha 1."""
        return None

    def integers(self, node: ir.Node, shape: tuple[int, ...]) -> Packed | None:
        """Return the order for a weight of 8 bits, as int8: uint8, and its zero point, minus 128."""
        return None


def hwio(shape: tuple[int, ...]) -> Packed:
    """Conv: [M, C / group, kh, kw] → [kh, kw, C / group, M]."""
    out, inner, kh, kw = shape
    attributes = {WEIGHT_LAYOUT: HWIO, OUT_CHANNELS: None}
    return Packed("hwio", lambda w: w.transpose(2, 3, 1, 0), (kh, kw, inner, out), attributes)


def scaled_matrix(node: ir.Node) -> tuple[bool, float, Callable[[np.ndarray], np.ndarray]]:
    """Return a product's transpose of the right side, its alpha, and a function that makes the plain matrix."""
    transposed = bool(attribute(node, "transB", 0))
    alpha = float(attribute(node, "alpha", 1.0)) if node.op_type == "Gemm" else 1.0

    def matrix(w: np.ndarray) -> np.ndarray:
        plain = w.T if transposed else w
        return plain if alpha == 1.0 else (plain * np.float32(alpha)).astype(w.dtype)

    return transposed, alpha, matrix

"""Orders of constant weights' elements, and how a provider says which one its kernels read."""

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
        kind: Tells it from other orders of the same weight.
        convert: From the elements as they are to those.
        shape: What `convert` makes.
        attributes: What the node has then.
        dtype: Of its elements, if that is another one.
    """

    kind: str
    convert: Callable[[np.ndarray], np.ndarray]
    shape: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dtype: ir.DataType | None = None


class Packing:
    """Which orders the kernels of a provider read; this one leaves all as it is. None: as the weight is."""

    def convolution(self, node: ir.Node, shape: tuple[int, ...]) -> Packed | None:
        """Of a Conv or ConvTranspose over two axes whose channels are last; `shape` is the weight's in ONNX's order."""
        return None

    def product(self, node: ir.Node, right: ir.Value, shape: tuple[int, ...]) -> Packed | None:
        """Of a MatMul or Gemm; `shape` is that of its right side. Afterwards it is not transposed, and alpha is 1."""
        return None

    def integers(self, node: ir.Node, shape: tuple[int, ...]) -> Packed | None:
        """Of a weight of 8 bits. It becomes int8: uint8 by 128 less, its zero point, too."""
        return None


def hwio(shape: tuple[int, ...]) -> Packed:
    """Conv: [M, C / group, kh, kw] → [kh, kw, C / group, M]."""
    out, inner, kh, kw = shape
    attributes = {WEIGHT_LAYOUT: HWIO, OUT_CHANNELS: None}
    return Packed("hwio", lambda w: w.transpose(2, 3, 1, 0), (kh, kw, inner, out), attributes)


def scaled_matrix(node: ir.Node) -> tuple[bool, float, Callable[[np.ndarray], np.ndarray]]:
    """Return of a product whether its right side is transposed, its alpha, and what makes the plain matrix."""
    transposed = bool(attribute(node, "transB", 0))
    alpha = float(attribute(node, "alpha", 1.0)) if node.op_type == "Gemm" else 1.0

    def matrix(w: np.ndarray) -> np.ndarray:
        plain = w.T if transposed else w
        return plain if alpha == 1.0 else (plain * np.float32(alpha)).astype(w.dtype)

    return transposed, alpha, matrix

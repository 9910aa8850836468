"""MatMulNBits, products with weights of few bits, and the ends that passes give them.

Inputs 0 to 5 and the attributes K, N, bits and block_size are com.microsoft's; `py_ort/schema/dialect.py` has the
others, each with a feature of kernels: rows of 8 bits ("bytes", where columns of 8-bit weights have one scale and zero
point each), a normalization of the rows ("norm"), an epilogue, a gate, after which the result has N / 2 columns, and a
residual.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import all_nodes, attribute, input_at
from py_ort.ir.operators import MICROSOFT
from py_ort.schema.dialect import A_DYNAMIC, A_SCALE, A_ZERO, EPILOGUE, GATE, NBITS_NORM, NBITS_RESIDUAL, NORM_EPSILON

OP_TYPE = "MatMulNBits"
WEIGHTS, SCALES, ZEROS, GROUPS, BIAS = range(1, 6)  # com.microsoft's inputs
#: Attributes that are ours.
OURS = (A_DYNAMIC, A_SCALE, A_ZERO, NORM_EPSILON, EPILOGUE, GATE)


def block_product(value: ir.Value | None) -> ir.Node | None:
    """Return the MatMulNBits that makes a value."""
    node = None if value is None else value.producer()
    return node if node is not None and is_block_product(node) else None


def is_block_product(node: ir.Node) -> bool:
    """Return True if a node is a MatMulNBits."""
    return node.domain == MICROSOFT and node.op_type == OP_TYPE


def block_products(model: ir.Model) -> Iterator[ir.Node]:
    """Yield the block products of a model; the graph may change meanwhile."""
    for node in list(all_nodes(model.graph)):
        if is_block_product(node) and node.graph is not None:
            yield node


def is_plain(node: ir.Node) -> bool:
    """Return True if a node is as com.microsoft defines it: without normalized rows, steps or an end."""
    return (
        len(node.inputs) <= NBITS_NORM
        and input_at(node, GROUPS) is None
        and not any(n in node.attributes for n in OURS)
    )


def may_end(node: ir.Node) -> bool:
    """Return True if another step may follow: nothing follows a gate, or a residual that no step reads."""
    return (input_at(node, NBITS_RESIDUAL) is None or Epilogue.of(node).has("residual")) and GATE not in node.attributes


def width_of(node: ir.Node) -> int:
    """Return the columns of its result."""
    columns = int(attribute(node, "N"))
    return columns // 2 if GATE in node.attributes else columns


def pack_nibbles(numbers: np.ndarray) -> np.ndarray:
    """Return numbers below 16 [..., n] of uint8 as bytes [..., ceil(n / 2)], the first of two in the low bits.

    Where n is odd, the last byte's high bits are zeros.
    """
    even = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, numbers.shape[-1] % 2)])
    return np.asarray(even[..., ::2] | even[..., 1::2] << 4, np.uint8)

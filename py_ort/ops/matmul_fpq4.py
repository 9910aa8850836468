"""MatMulFpQ4: a product with weights of 4 bits in onnxruntime's own packing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import InvalidGraph, NotImplemented
from py_ort.ir.block_products import pack_nibbles
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, ints
from py_ort.ir.operators import MICROSOFT, Operator, lowering

OPERATORS = [Operator("MatMulFpQ4", domain=MICROSOFT)]

_BLOCK = 32


@lowering("MatMulFpQ4", domain=MICROSOFT)
def matmul_fpq4(node: ir.Node, build: Builder) -> Any:
    """MatMulNBits, whose weights are packed in another order.

    For each block of a column there are a scale of 4 bytes, a zero point of one byte (type 0 has none: it is 8), and
    32 numbers in 16 bytes: the first 16 in the lower halves, the others in the upper ones.
    """
    packed, sizes = array(node.inputs[1]), ints(node.inputs[2])
    where: dict[str, Any] = {"node": node.name or "", "op_type": node.op_type, "domain": node.domain}
    if packed is None or sizes is None or len(sizes) != 2:
        raise NotImplemented("MatMulFpQ4 of weights that are not constant: make B and B_shape initializers", **where)
    rows, columns = sizes
    blocks, has_zero = -(-rows // _BLOCK), attribute(node, "blk_quant_type", 1) != 0
    size = 4 + has_zero + _BLOCK // 2
    if packed.size != columns * blocks * size:
        raise InvalidGraph(f"B has {packed.size} bytes, but B_shape {sizes} needs {columns * blocks * size}", **where)
    parts = packed.reshape(columns, blocks, size)
    scales = np.ascontiguousarray(parts[..., :4]).view(np.float32)[..., 0]
    halves = parts[..., 4 + has_zero :]
    numbers = np.concatenate([halves & 15, halves >> 4], -1)
    zeros = pack_nibbles(parts[..., 4]) if has_zero else None
    return build.op(
        "MatMulNBits", node.inputs[0], pack_nibbles(numbers), scales, zeros,
        domain=MICROSOFT, K=rows, N=columns, bits=4, block_size=_BLOCK,
    )  # fmt: skip

"""Operators that quantize, dequantize, and compute with quantized numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from py_ort.ir.block_products import pack_nibbles
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, rank, set_attributes
from py_ort.ir.operators import INTERNAL, MICROSOFT, Operator, lowering
from py_ort.ir.value_types import infer_like_input
from py_ort.ops.quantized_shapes import (
    infer_as,
    infer_block_product,
    infer_gathered_blocks,
    infer_qgemm,
    refine_packed,
)
from py_ort.schema.dialect import BYTE_TABLE, DYNAMIC_FAKE_QUANTIZE


def _infer_table(node: ir.Node) -> None:
    x, table = node.inputs[0], node.inputs[1]
    if x is not None and table is not None and table.dtype is not None:
        node.outputs[0].type, node.outputs[0].shape = ir.TensorType(table.dtype), x.shape


OPERATORS = [
    Operator("QuantizeLinear", layout="quantized"),
    Operator("DequantizeLinear", layout="quantized"),
    Operator("DynamicQuantizeLinear", expand=False),
    Operator(DYNAMIC_FAKE_QUANTIZE, domain=INTERNAL, layout="elementwise", infer=infer_like_input),
    Operator("MatMulInteger", refine=refine_packed, integer_weights=(1, 3), heavy=True),
    Operator("ConvInteger", integer_weights=(1, 3), heavy=True),
    Operator("QLinearMatMul", refine=refine_packed, integer_weights=(3, 5)),
    Operator("QLinearConv", layout="channels", integer_weights=(3, 5)),
    *(
        Operator(f"QLinear{name}", domain=MICROSOFT, infer=infer_like_input, layout=layout)
        for name, layout in (("Sigmoid", "elementwise"), ("LeakyRelu", "elementwise"), ("Softmax", ""))
    ),
    *(
        Operator(f"QLinear{name}", domain=MICROSOFT, infer=infer_as(name, *places), layout=layout)
        for name, places, layout in (
            ("Add", (0, 3), "elementwise"),
            ("Mul", (0, 3), "elementwise"),
            ("AveragePool", (0,), "quantized_pool"),
            ("GlobalAveragePool", (0,), "quantized_pool"),
            ("Concat", (), "quantized_concat"),
        )
    ),
    # Bytes by a table of 256: what passes/fuse/byte_tables.py makes.
    Operator(BYTE_TABLE, domain=INTERNAL, layout="table", infer=_infer_table),
    # Where a condition stands, a number gives the same sizes.
    Operator("QLinearWhere", domain=MICROSOFT, infer=infer_as("Sum", 0, 1, 4, of=1)),
    Operator("DynamicQuantizeMatMul", domain=MICROSOFT, infer=infer_as("MatMul", 0, 1), integer_weights=(1, 3)),
    Operator("MatMulIntegerToFloat", domain=MICROSOFT, infer=infer_as("MatMul", 0, 1, of=2), integer_weights=(1, 5)),
    *(Operator(name, domain=MICROSOFT) for name in ("QuantizeLinear", "DequantizeLinear")),
    Operator("MatMulBnb4", domain=MICROSOFT, infer=infer_block_product),
    Operator("MatMulNBits", domain=MICROSOFT, infer=infer_block_product, heavy=True),
    Operator("GatherBlockQuantized", domain=MICROSOFT, indices=(1,), infer=infer_gathered_blocks),
    Operator("QGemm", domain=MICROSOFT, infer=infer_qgemm, integer_weights=(3, 5)),
]


@lowering("QuantizeLinear", "DequantizeLinear", before=13)
def per_tensor(node: ir.Node, build: Builder) -> None:
    """There was one scale for all."""
    if attribute(node, "axis") is None:
        set_attributes(node, axis=1)


@lowering("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT)
def microsoft(node: ir.Node, build: Builder) -> Any:
    """com.microsoft's came before ONNX's had all types; now they are the same."""
    return build.op(node.op_type, *node.inputs, **attributes_of(node))


@lowering("GatherBlockQuantized", domain=MICROSOFT)
def blocks_in_bytes(node: ir.Node, build: Builder) -> Any:
    """A table of int4 or uint4 holds what one of bytes does, whose zero would be 8."""
    table, indices, scales, zeros = (*node.inputs, None)[:4]
    held, points = (None if value is None else value.const_value for value in (table, zeros))
    if held is None or held.dtype not in _FOUR_BITS or held.shape.numpy()[-1] % 2:
        return None
    if points is None:
        steps = None if scales is None else scales.const_value
        if zeros is not None or steps is None:
            return None
        points = ir.tensor(np.zeros(steps.shape.numpy(), _FOUR_BITS[held.dtype]))
    given = [_in_bytes(held), indices, scales, _in_bytes(points)]
    return build.op("GatherBlockQuantized", *given, domain=MICROSOFT, **attributes_of(node) | {"bits": 4})


_FOUR_BITS = {ir.DataType.INT4: ml_dtypes.int4, ir.DataType.UINT4: ml_dtypes.uint4}


def _in_bytes(tensor: ir.TensorProtocol) -> np.ndarray:
    """Two elements in each byte of the last dimension, the first in the low bits; int4 is moved by 8."""
    elements = tensor.numpy().astype(np.int8).view(np.uint8) & 15
    if tensor.dtype == ir.DataType.INT4:
        elements ^= 8
    return pack_nibbles(elements)


@lowering("QGemm", domain=MICROSOFT)
def qgemm(node: ir.Node, build: Builder) -> Any:
    """Transposed operands are transposed before it; weights once and for all."""
    inputs = list(node.inputs)
    flags = {0: "transA", 3: "transB"}
    if not any(attribute(node, name, 0) for name in flags.values()):
        return None
    for index, name in flags.items():
        if attribute(node, name, 0):
            inputs[index] = build.op("Transpose", inputs[index], perm=[1, 0])
    kept = {key: value for key, value in attributes_of(node).items() if key not in flags.values()}
    return build.op("QGemm", *inputs, domain=MICROSOFT, **kept)


@lowering("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(node: ir.Node, build: Builder) -> Any:
    """Before opset 13 a softmax went over all axes from its own: the attribute `opset` says so."""
    known, axis = rank(node.inputs[0]), attribute(node, "axis", -1)
    old = attribute(node, "opset", 13) < 13
    set_attributes(node, opset=None)
    if not old or known is None or axis in (-1, known - 1):
        return None
    flat = build.op("Flatten", node.inputs[0], axis=axis)
    result = build.op("QLinearSoftmax", flat, *node.inputs[1:], domain=MICROSOFT, axis=-1)
    return build.op("Reshape", result, build.op("Shape", node.inputs[0]))

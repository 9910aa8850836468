"""Quantized numbers, and what computes with them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.ir.block_products import width_of
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, rank, set_attributes
from py_ort.ir.operators import INTERNAL, MICROSOFT, Operator, lowering
from py_ort.ir.value_types import infer_like_input, like, set_dims

_SAME_SHAPE = ("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
_TWO_OPERANDS = ("QLinearAdd", "QLinearMul")


def _infer_quantized(node: ir.Node) -> None:
    """The dtype stays; so does the shape, except of pools, and where operands broadcast."""
    same = node.op_type in _SAME_SHAPE or (
        node.op_type in _TWO_OPERANDS and dims(node.inputs[0]) == dims(node.inputs[3])
    )
    like(node.outputs[0], node.inputs[0])
    if not same:
        node.outputs[0].shape = None


def _infer_block_product(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[0])
    rows = dims(node.inputs[0])
    node.outputs[0].shape = ir.Shape([*rows[:-1], width_of(node)]) if rows else None


def _infer_qgemm(node: ir.Node) -> None:
    """The type is that of the result's zero point; without a scale for it, float."""
    output, quantized = node.outputs[0], len(node.inputs) > 7 and node.inputs[7] is not None
    like(output, node.inputs[8] if quantized and len(node.inputs) > 8 else node.inputs[0], [])
    if not quantized:
        output.type = ir.TensorType(ir.DataType.FLOAT)
    rows, columns = dims(node.inputs[0]), dims(node.inputs[3])
    output.shape = None
    if rows is not None and columns is not None and len(rows) == len(columns) == 2:
        set_dims(output, [rows[0], columns[1]])


OPERATORS = [
    Operator("QuantizeLinear", layout="quantized"),
    Operator("DequantizeLinear", layout="quantized"),
    Operator("DynamicQuantizeLinear", expand=False),
    Operator("DynamicFakeQuantize", domain=INTERNAL, layout="elementwise", infer=infer_like_input),
    *(Operator(name, heavy=True) for name in ("MatMulInteger", "ConvInteger")),
    Operator("QLinearMatMul"),
    Operator("QLinearConv", layout="channels"),
    *(
        Operator(f"QLinear{name}", domain=MICROSOFT, infer=_infer_quantized, layout=layout)
        for layout, names in (
            ("elementwise", ("Add", "Mul", "Sigmoid", "LeakyRelu")),
            ("quantized_pool", ("AveragePool", "GlobalAveragePool")),
            ("", ("Softmax",)),
        )
        for name in names
    ),
    Operator("QLinearConcat", domain=MICROSOFT, layout="quantized_concat"),
    *(Operator(name, domain=MICROSOFT) for name in ("MatMulBnb4", "QLinearWhere")),
    *(Operator(name, domain=MICROSOFT) for name in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat")),
    *(Operator(name, domain=MICROSOFT) for name in ("QuantizeLinear", "DequantizeLinear")),
    Operator("MatMulNBits", domain=MICROSOFT, infer=_infer_block_product, heavy=True),
    Operator("GatherBlockQuantized", domain=MICROSOFT, indices=(1,)),
    Operator("QGemm", domain=MICROSOFT, infer=_infer_qgemm),
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

"""Quantised numbers."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.builder import Builder, attribute, set_attributes
from py_ort.ops.declaration import MICROSOFT, Operator, lowering
from py_ort.ops.infer import like


def _infer_quantized(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[0])
    node.outputs[0].shape = (
        None
        if node.op_type not in ("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu")
        else node.outputs[0].shape
    )


OPERATORS = [
    Operator("QuantizeLinear", tolerance="exact"),
    Operator("DequantizeLinear", tolerance="exact"),
    Operator("DynamicQuantizeLinear", tolerance="exact", expand=False),
    *(
        Operator(f"QLinear{name}", domain=MICROSOFT, tolerance="exact", infer=_infer_quantized)
        for name in ("Add", "Mul", "Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool")
    ),
    *(
        Operator(name, domain=MICROSOFT, tolerance="normal")
        for name in ("MatMulNBits", "GatherBlockQuantized", "QLinearConcat")
    ),
    *(
        Operator(name, domain=MICROSOFT, tolerance="normal")
        for name in ("DynamicQuantizeMatMul", "MatMulIntegerToFloat")
    ),
    *(Operator(name, domain=MICROSOFT, tolerance="exact") for name in ("QuantizeLinear", "DequantizeLinear")),
]


@lowering("QuantizeLinear", "DequantizeLinear", before=13)
def per_tensor(node: ir.Node, build: Builder) -> None:
    """There was one scale for all."""
    if attribute(node, "axis") is None:
        set_attributes(node, axis=1)

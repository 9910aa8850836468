"""Attention and rotary embedding, ONNX's own and com.microsoft's."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.builder import attribute, dims
from py_ort.ops.declaration import MICROSOFT, Operator
from py_ort.ops.infer import like


def _infer_first(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[0])
    if node.op_type == "Attention":
        node.outputs[0].shape = None
    for output in node.outputs[1:]:
        like(output, node.inputs[0])
        output.shape = None


def _infer_attention(node: ir.Node) -> None:
    """With `offsets`, inputs are parts of wider tensors: the queries' rows, the values' sizes."""
    sizes, known = attribute(node, "head_sizes"), dims(node.inputs[0])
    if sizes is None or known is None:
        return
    like(node.outputs[0], node.inputs[0])
    node.outputs[0].shape = ir.Shape([*known[:2], attribute(node, "q_num_heads") * sizes[1]])


OPERATORS = [
    Operator("Attention", tolerance="normal", refine=_infer_attention),
    Operator("RotaryEmbedding", tolerance="tight"),
    *(
        Operator(name, domain=MICROSOFT, tolerance="normal", infer=_infer_first)
        for name in (
            "Attention",
            "MultiHeadAttention",
            "GroupQueryAttention",
            "RotaryEmbedding",
            "QAttention",
            "PackedAttention",
            "DecoderMaskedMultiHeadAttention",
        )
    ),
    Operator("EmbedLayerNormalization", domain=MICROSOFT, tolerance="normal"),
]

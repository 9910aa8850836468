"""Layers with a recurrent state instead of a cache: LinearAttention, and the convolution that goes before it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ir.value_types import like


def _with_window(node: ir.Node, own: list[Any]) -> list[Any]:
    window = attribute(node, "state_window", 0)
    return [window, *own] if window else own


def _infer_linear_attention(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[0])
    query, value = dims(node.inputs[0]), dims(node.inputs[2])
    query_heads, heads = attribute(node, "q_num_heads"), attribute(node, "kv_num_heads")
    known = query is not None and value is not None and isinstance(query[2], int) and isinstance(value[2], int)
    node.outputs[0].shape = None
    if known:
        width = max(query_heads, heads) * value[2] // heads  # type: ignore[index]
        node.outputs[0].shape = ir.Shape([*query[:2], width])  # type: ignore[index]
    if len(node.outputs) > 1:
        past = node.inputs[3] if len(node.inputs) > 3 else None
        like(node.outputs[1], past or node.inputs[0])
        node.outputs[1].shape = None
        if known:
            own = [query[0], heads, query[2] // query_heads, value[2] // heads]  # type: ignore[index]
            node.outputs[1].shape = ir.Shape(_with_window(node, own))


def _infer_causal_conv(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[0])
    if len(node.outputs) > 1:
        like(node.outputs[1], node.inputs[0])
        node.outputs[1].shape = None
        x, weights = dims(node.inputs[0]), dims(node.inputs[1])
        if x is not None and weights is not None and isinstance(weights[2], int):
            axis = 1 if attribute(node, "channels_last", 0) else 2
            states = (weights[2] - 1) * attribute(node, "dilation", 1)
            node.outputs[1].shape = ir.Shape(_with_window(node, [*x[:axis], states, *x[axis + 1 :]]))


OPERATORS = [
    Operator("LinearAttention", infer=_infer_linear_attention),
    Operator("CausalConvWithState", infer=_infer_causal_conv),
    *(Operator(name, domain=MICROSOFT) for name in ("LinearAttention", "CausalConvWithState")),
]


@lowering("LinearAttention", "CausalConvWithState", domain=MICROSOFT)
def microsoft(node: ir.Node, build: Builder) -> Any:
    """com.microsoft's have more attributes; our kernels know them in ONNX's operators, too."""
    return build.op(node.op_type, *node.inputs, outputs=len(node.outputs), **attributes_of(node))

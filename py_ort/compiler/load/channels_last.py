"""Convolutions of com.ms.internal.nhwc, which onnxruntime writes into models that it laid out: Conv between Transposes.

Input and output are [N, spatial…, C]; the weights are as ONNX has them. py_ort's layout chooses again.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.graph import all_graphs, set_origins
from py_ort.ir.operators import MICROSOFT, NHWC

_FUSED = ("activation", "activation_params")


def take_apart_channels_last(model: ir.Model) -> None:
    """Replace the convolutions of known rank in place; the later check refuses other nodes of that domain."""
    if NHWC not in model.opset_imports:
        return
    for graph in all_graphs(model.graph):
        for node in list(graph):
            rank = _rank(node) if node.domain == NHWC and node.op_type == "Conv" else None
            if rank is not None:
                _take_apart(graph, node, rank, model)


def _rank(node: ir.Node) -> int | None:
    window = node.attributes.get("kernel_shape")
    if window is not None and not window.is_ref():
        return 2 + len(window.value)
    shapes = (value.shape for value in node.inputs[:2] if value is not None)
    return next((len(shape) for shape in shapes if shape is not None), None)


def _take_apart(graph: ir.Graph, node: ir.Node, rank: int, model: ir.Model) -> None:
    model.opset_imports.setdefault("", max(model.opset_imports[NHWC], 11))
    fused = len(node.inputs) > 3 or any(name in node.attributes for name in _FUSED)
    if fused:
        model.opset_imports.setdefault(MICROSOFT, 1)
    image, *others = node.inputs
    first = _transpose(node, image, [0, rank - 1, *range(1, rank - 1)])
    # The fourth input, which is added, is laid out as the output is.
    inputs = [first.outputs[0], *others[:2]]
    added = [_transpose(node, value, [0, rank - 1, *range(1, rank - 1)]) for value in others[2:]]
    conv = ir.Node(
        MICROSOFT if fused else "",
        "FusedConv" if fused else "Conv",
        [*inputs, *(one.outputs[0] for one in added)],
        list(node.attributes.values()),
        name=node.name,
    )
    last = _transpose(node, conv.outputs[0], [0, *range(2, rank), 1])
    made = [first, *added, conv, last]
    for one in made:
        set_origins(one, (node.name or node.op_type,))
    graph.insert_before(node, made)
    old, new = node.outputs[0], last.outputs[0]
    name, shape, type_ = old.name, old.shape, old.type
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    graph.remove(node, safe=False)
    new.name, new.shape, new.type = name, shape, type_


def _transpose(node: ir.Node, value: ir.Value | None, perm: list[int]) -> ir.Node:
    return ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", perm)], name=node.name)

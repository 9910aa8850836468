"""Normalisations."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.builder import Builder, attribute, dims, set_attributes
from py_ort.ops.declaration import MICROSOFT, Operator, lowering
from py_ort.ops.infer import like


def _infer_like_input(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[0])
    for output in node.outputs[1:]:
        like(output, node.inputs[0])
        output.shape = None


OPERATORS = [
    Operator("BatchNormalization", layout="channels", tolerance="normal"),
    Operator("InstanceNormalization", layout="channels", tolerance="normal"),
    Operator("LayerNormalization", layout="trailing_axes", tolerance="normal", expand=False),
    Operator("RMSNormalization", layout="trailing_axes", tolerance="normal", expand=False),
    Operator("GroupNormalization", layout="channels", tolerance="normal"),
    Operator("LpNormalization", layout="axis", tolerance="normal"),
    Operator("MeanVarianceNormalization", tolerance="normal"),
    Operator("LRN", layout="channels", tolerance="normal"),
    *(
        Operator(name, domain=MICROSOFT, tolerance="normal", infer=_infer_like_input)
        for name in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "GroupNorm", "SkipGroupNorm")
    ),
    # These two live in ai.onnx in onnxruntime's own exports.
    Operator("SimplifiedLayerNormalization", tolerance="normal", infer=_infer_like_input),
    Operator("SimplifiedLayerNormalization", domain=MICROSOFT, tolerance="normal", infer=_infer_like_input),
]


@lowering("BatchNormalization", before=14)
def inference_form(node: ir.Node, build: Builder) -> None:
    """Training outputs and flags were optional; what is used for inference has one output."""
    if attribute(node, "spatial", 1) == 0:
        return
    set_attributes(node, is_test=None, spatial=None, consumed_inputs=None)
    if not any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
        node.resize_outputs(1)
        set_attributes(node, training_mode=0)


@lowering("GroupNormalization", before=21)
def scale_per_group(node: ir.Node, build: Builder) -> None:
    """Scale and bias were given per group."""
    groups = attribute(node, "num_groups")
    known = dims(node.inputs[0])
    if known is None or not isinstance(known[1], int):
        return
    each = known[1] // groups
    for index in (1, 2):
        column = build.op("Unsqueeze", node.inputs[index], [1])
        wide = build.op("Expand", column, [groups, each])
        node.replace_input_with(index, build.op("Reshape", wide, [-1]))

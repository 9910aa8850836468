"""Transpose, then a normalization of the last axis → the other way round: heads are normalized in their rows."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_user
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, origins, rank


@rewrite(
    *("RMSNormalization", "LayerNormalization"),
    after=("layer_norm", "rms_norm"),
    before=("attention",),  # which follows transposes to rows, but no normalization
)
def transposed_norms(node: ir.Node) -> bool:
    """Swap them if the transpose keeps the last axis and has no other reader."""
    x = node.inputs[0]
    transpose, count = made_by(x, "Transpose"), rank(x)
    perm = None if transpose is None else attribute(transpose, "perm")
    if x is None or transpose is None or not perm or count is None or perm[-1] != count - 1 or only_user(x) is not node:
        return False
    if attribute(node, "axis", -1) not in (-1, count - 1) or any(rank(v) not in (None, 1) for v in node.inputs[1:]):
        return False
    if any(o.uses() or o.is_graph_output() for o in node.outputs[1:]):
        return False
    build = Builder(node, origin=(*origins(transpose), *origins(node)))
    inner = build.op(node.op_type, transpose.inputs[0], *node.inputs[1:], **{**attributes_of(node), "axis": -1})
    inner.type, inner.shape = x.type, ir.Shape(dims(transpose.inputs[0]) or [])
    build.finish(build.op("Transpose", inner, perm=list(perm)))
    return True

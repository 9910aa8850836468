"""Rows made flat for a Gemm, and put back: one MatMul, which takes any number of axes.

[…, K] → [-1, K] → Gemm → […, N], as PyTorch's exporters write addmm, GPT-2's projections.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import drop, made_by, nodes_reading, same_size, size_at
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, origins, rank, replace_value


@rewrite("Gemm")
def flat_products(node: ir.Node) -> bool:
    """Multiply by constant weights without the Reshapes around a Gemm."""
    flatten, weights = made_by(node.inputs[0], "Reshape"), node.inputs[1]
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if flatten is None or weights is None or weights.const_value is None or attribute(node, "transA", 0):
        return False
    # The weights are not changed: in large models they are files that are not read yet.
    if attribute(node, "transB", 0) or attribute(node, "alpha", 1.0) != 1 or attribute(node, "beta", 1.0) != 1:
        return False
    if bias is not None and (bias.const_value is None or rank(bias) != 1):
        return False
    rows, users = flatten.inputs[0], nodes_reading(node.outputs[0])
    wide = dims(rows)
    if rows is None or wide is None or len(wide) < 3 or node.outputs[0].is_graph_output() or not users:
        return False
    if not same_size(wide[-1], size_at(weights, 0)) or rank(node.inputs[0]) != 2:
        return False
    wanted = [*wide[:-1], size_at(weights, 1)]
    for user in users:
        known = dims(user.outputs[0]) if made_by(user.outputs[0], "Reshape") and user.graph is node.graph else None
        if known is None or len(known) != len(wanted) or not all(map(same_size, known, wanted)):
            return False
    build = Builder(node, origin=(*origins(flatten), *origins(node)))
    made = build.op("MatMul", rows, weights)
    if bias is not None:
        made = build.op("Add", made, bias)
    made.shape = ir.Shape(wanted)
    for user in users:
        replace_value(user.outputs[0], made)
        drop(user.outputs[0])
    return True

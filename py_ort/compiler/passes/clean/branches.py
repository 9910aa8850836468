"""If with a condition that is known → the nodes of its branch."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.graph import add_constant, attribute, remove_with_subgraphs, replace_value, scalar


@rewrite("If", repeat=True, after=("folding",))  # conditions are constants by then
def branches(node: ir.Node) -> bool:
    """Put the branch in the place of an If whose condition is a constant; a taken branch may hold more of them."""
    condition = scalar(node.inputs[0])
    graph = node.graph
    if condition is None or not isinstance(graph, ir.Graph):
        return False
    branch: ir.Graph = attribute(node, "then_branch" if condition else "else_branch")
    for value in list(branch.initializers.values()):
        assert value.const_value is not None
        value.replace_all_uses_with(add_constant(graph, value.const_value, value.name), replace_graph_outputs=True)
    results = list(branch.outputs)
    branch.outputs.clear()
    for inner in list(branch):
        branch.remove(inner)
        graph.insert_before(node, inner)
    for old, new in zip(node.outputs, results, strict=True):
        replace_value(old, new)
    remove_with_subgraphs(node)
    return True

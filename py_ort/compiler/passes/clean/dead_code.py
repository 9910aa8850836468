"""Removes nodes, optional outputs and constants that nothing reads."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.contracts import check_alive
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.graph import all_graphs, remove_with_subgraphs
from py_ort.ir.operators import operator


class DeadCode(Pass):
    """Backwards from the outputs."""

    def call(self, model: ir.Model) -> int:
        """Remove unused nodes."""
        count = 0
        graphs = list(all_graphs(model.graph))
        for graph in reversed(graphs):
            for node in reversed(list(graph)):
                if not any(output.uses() or output.is_graph_output() for output in node.outputs):
                    remove_with_subgraphs(node)
                    count += 1
                elif operator("", node.op_type).optional_outputs:
                    count += _trim(node)
        for graph in graphs if len(graphs) == 1 else all_graphs(model.graph):
            for name, value in list(graph.initializers.items()):
                if not value.uses() and not value.is_graph_output():
                    del graph.initializers[name]
                    count += 1
        return count

    def ensures(self, model: ir.Model) -> None:
        """Everything is read by something."""
        check_alive(model)


def _trim(node: ir.Node) -> int:
    count = len(node.outputs)
    while count > 1 and not (node.outputs[count - 1].uses() or node.outputs[count - 1].is_graph_output()):
        count -= 1
    trimmed = len(node.outputs) - count
    if trimmed:
        node.resize_outputs(count)
    return trimmed

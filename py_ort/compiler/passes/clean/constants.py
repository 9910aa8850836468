"""Constant nodes become initializers, and initializers that were graph inputs too become constants."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.constants import hoist_constant
from py_ort.ir.graph import all_graphs, all_nodes


class Constants(Pass):
    """Constant → initializer."""

    def requires(self, model: ir.Model) -> None:
        """Any opset: this comes before all else."""

    def call(self, model: ir.Model) -> int:
        """Move the tensors out of the nodes."""
        count = 0
        for graph in list(all_graphs(model.graph)):
            for value in graph.initializers.values():
                if value.type is None and value.const_value is not None:
                    value.type = ir.TensorType(value.const_value.dtype)
                if value.const_value is not None:
                    value.shape = ir.Shape(value.const_value.shape.numpy())
            # Old models list their weights as inputs as well. onnxruntime's get_inputs() leaves these out, and so do
            # we.
            for value in [v for v in graph.inputs if v.is_initializer()]:
                graph.inputs.remove(value)
                count += 1
            for node in list(graph):
                if node.op_type == "Constant" and node.domain == "":
                    count += hoist_constant(node)
        return count

    def ensures(self, model: ir.Model) -> None:
        """No Constant is left that holds a plain tensor."""
        left = [
            n.name
            for n in all_nodes(model.graph)
            if n.op_type == "Constant" and n.domain == "" and not n.outputs[0].is_graph_output()
        ]
        assert not left, f"Constant nodes left: {left}"

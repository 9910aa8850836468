"""Operators whose result's shape depends on data → a node that counts, and the operator, which takes the count.

Runs after placement, for the nodes of a GPU; on the CPU they stay as they are.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.placed.kernel_pass import KernelPass
from py_ort.ir.builder import Builder
from py_ort.ir.graph import all_nodes, attributes_of
from py_ort.ir.operators import INTERNAL
from py_ort.ops.counted import COUNTED


class Counts(KernelPass):
    """Splits nodes on a device. The core downloads only the count, a host input, and continues with it."""

    def call(self, model: ir.Model) -> int:
        """Give each such node its counting node."""
        found = [
            node
            for node in all_nodes(model.graph)
            if node.domain == "" and node.op_type in COUNTED and self._takes(node) and not _is_counted(node)
        ]
        for node in found:
            known = COUNTED[node.op_type]
            inputs = [*node.inputs, *[None] * (known.inputs - len(node.inputs))]
            results = Builder(node).op(
                known.counting, *inputs, domain=INTERNAL, outputs=known.results + 1, **attributes_of(node)
            )
            node.resize_inputs(known.inputs + known.results + 1)
            for index, value in enumerate(results, known.inputs):
                node.replace_input_with(index, value)
        return len(found)


def _is_counted(node: ir.Node) -> bool:
    return len(node.inputs) > COUNTED[node.op_type].inputs

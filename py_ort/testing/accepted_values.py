"""Numbers that a model compares an input with, such as the sample rates of a speech model."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.constants import constant_tensor
from py_ort.ir.graph import all_nodes
from py_ort.ir.operators import operator


def accepted_values(model: ir.Model) -> dict[str, list[int]]:
    """Return, for each integer input of at most one element that is compared with constants, these numbers.

    Args:
        model: As it was loaded.
    """
    constants = {
        node.outputs[0]: constant_tensor(node)
        for node in all_nodes(model.graph)
        if node.op_type == "Constant" and node.domain == ""
    }
    found: dict[str, list[int]] = {}
    for value in model.graph.inputs:
        single = value.shape is not None and all(d == 1 for d in value.shape)
        if not single or value.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
            continue
        same, numbers = [value], []
        for each in same:
            for node, index in each.uses():
                if index == 0 and _keeps_number(node):
                    same.append(node.outputs[0])
                elif node.op_type == "Equal":
                    other = node.inputs[1 - index]
                    tensor = None if other is None else other.const_value or constants.get(other)
                    if tensor is not None and tensor.size == 1:
                        numbers.append(int(tensor.numpy().item()))
        if numbers:
            found[value.name or ""] = list(dict.fromkeys(numbers))
    return found


def _keeps_number(node: ir.Node) -> bool:
    """Return True if a node returns a single number unchanged."""
    declared = operator(node.domain, node.op_type)
    return declared.view or declared.converts or (declared.moves and len(node.outputs) == 1)

"""Expand for operators that broadcast by themselves → nothing."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import same_size
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.graph import dims, remove
from py_ort.ir.operators import operator


@rewrite("Expand")
def expansions(node: ir.Node) -> int:
    """`x * gate.expand_as(x)`: readers with another input as wide take the narrow tensor; the Expand stays for others.

    Returns:
        The number of these readers.
    """
    narrow, wide = node.inputs[0], node.outputs[0]
    assert narrow is not None
    count = 0
    for reader, at in list(wide.uses()):
        if _wide_without(reader, at, narrow):
            reader.replace_input_with(at, narrow)
            count += 1
    if not wide.uses() and not wide.is_graph_output():
        remove(node)
    return count


def _wide_without(reader: ir.Node, at: int, narrow: ir.Value) -> bool:
    """Return True if the reader's result keeps its shape with `narrow` as input `at`."""
    broadcasts = reader.domain == "" and operator("", reader.op_type).layout == "elementwise"
    if not broadcasts or len(reader.inputs) < 2 or (reader.op_type == "PRelu" and at == 0):
        return False
    shape = dims(reader.outputs[0])
    inputs = [dims(narrow), *(dims(v) for i, v in enumerate(reader.inputs) if i != at and v is not None)]
    if shape is None or any(each is None for each in inputs):
        return False

    def given(back: int) -> bool:
        """Return True if an input has the result's size on an axis, counted from the last."""
        return any(each is not None and back <= len(each) and same_size(each[-back], shape[-back]) for each in inputs)

    return all(given(back) for back in range(1, len(shape) + 1))

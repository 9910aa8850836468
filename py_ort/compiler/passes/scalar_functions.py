"""Recognizes nodes that are scalar functions, and reads their parameters."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.graph import attribute
from py_ort.schema.scalar_functions import FUNCTIONS, INTERNAL, ScalarFunction, scalar_function


def function_of(node: ir.Node) -> ScalarFunction | None:
    """Return the scalar function that a node is, or None. Of com.microsoft's none is."""
    if node.domain == INTERNAL:
        row = FUNCTIONS.get(node.op_type)
        return row if row is not None and INTERNAL in row.domains else None
    if node.domain != "":
        return None
    return scalar_function(node.op_type, {name: item.value for name, item in node.attributes.items()})


def numbers_of(row: ScalarFunction, node: ir.Node) -> list[float]:
    """Return the function's parameters as the node has them."""
    return [float(attribute(node, name, default)) for name, default in row.parameters.items()]

"""Inputs whose numbers are indices on a device, which cannot refuse them: runs check such feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.ir.graph import attribute, dims
from py_ort.ir.operators import operator
from py_ort.providers import PlacedNode


def with_index_limits(
    inputs: Sequence[NodeArg], graph: ir.Graph, placed: Mapping[ir.Node, PlacedNode]
) -> list[NodeArg]:
    """Return the inputs, with the size of the smallest axis that each indexes.

    Args:
        inputs: The model's inputs.
        graph: Its main graph: a branch may never be taken.
        placed: The placement of each node.
    """
    limits: dict[str, int] = {}
    for node in graph:
        if node.op_type != "Gather" or node.domain or not placed[node].on_device:
            continue
        fed, sizes = _fed(node.inputs[1]), dims(node.inputs[0])
        size = sizes[attribute(node, "axis", 0) % len(sizes)] if sizes else None
        if fed and isinstance(size, int):
            limits[fed] = min(size, limits.get(fed, size))
    return [replace(arg, index_limit=limits.get(arg.name)) for arg in inputs]


def _fed(value: ir.Value | None) -> str:
    """Return the model input that has the same numbers as a value; "" if none has."""
    while value is not None and not value.is_graph_input():
        node = value.producer()
        if node is None or not (node.op_type == "Cast" or operator(node.domain, node.op_type).view):
            return ""
        value = node.inputs[0]
    return "" if value is None or value.is_initializer() else value.name or ""

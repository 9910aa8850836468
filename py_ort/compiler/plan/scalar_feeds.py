"""Feeds of one element for inputs that the model declares as scalars.

onnxruntime checks no shape where an input is declared `[]`, and callers feed [16000] for 16000. The compiler takes the
declared rank for granted, so a feed with more dimensions counts as the scalar only where nothing can tell them apart.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.graph import array
from py_ort.ir.operators import operator

#: Dimensions of a feed whose rank no node sees.
_ANY = 255


def feed_ranks(graph: ir.Graph) -> dict[ir.Value, int]:
    """Return, by input declared as a scalar, how many dimensions a feed of one element may have in its place."""
    scalars = [value for value in graph.inputs if isinstance(value.type, ir.TensorType) and value.shape == ()]
    return {value: _hidden(value) for value in scalars}


def _hidden(value: ir.Value) -> int:
    """Return how many leading dimensions of size 1 the value may have besides its own without any effect."""
    if value.is_graph_output() or value.shape is None:
        return 0
    return min((_hidden_from(use.node, use.idx, value) for use in value.uses()), default=_ANY)


def _hidden_from(node: ir.Node, index: int, value: ir.Value) -> int:
    declared = operator(node.domain, node.op_type)
    if index in declared.host or index in declared.host_if_constant:
        return _ANY  # kernels read the elements
    target = array(node.inputs[1]) if node.op_type == "Reshape" and index == 0 else None
    if target is not None and target.all():
        return _ANY  # no size is copied
    if node.op_type == "Gather" and index == 1 and node.attributes["axis"].as_int() == 0:
        return _hidden(node.outputs[0])
    if declared.layout != "elementwise" or node.domain != "" or index in declared.shape_only:
        return 0
    rank, whole = len(value.shape or ()), node.outputs[0].shape
    if whole is None or len(whole) == rank:
        return _hidden(node.outputs[0])
    return len(whole) - rank

"""Feeds of one element for inputs that the model declares as scalars.

onnxruntime checks no shape where an input is declared `[]`, and callers feed [16000] for 16000. The compiler takes the
declared rank for granted, so a feed with more dimensions counts as the scalar only where nothing can tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from py_ort.ir.graph import array, rank
from py_ort.ir.operators import operator

#: Dimensions of a feed whose rank no node sees.
_ANY = 255


def feed_ranks(graph: ir.Graph, declared: Mapping[str, int]) -> dict[ir.Value, int]:
    """Return how many dimensions a feed of one element may have, by input that the model declares as a scalar.

    Args:
        graph: In the newest forms, as the model means it.
        declared: Numbers of dimensions of outputs, as far as the model says them: inference does not find all.
    """
    scalars = [value for value in graph.inputs if isinstance(value.type, ir.TensorType) and value.shape == ()]
    return {value: _hidden(value, declared) for value in scalars}


def _hidden(value: ir.Value, declared: Mapping[str, int]) -> int:
    """Return how many leading dimensions of size 1 the value may have besides its own without any effect."""
    if value.is_graph_output() or value.shape is None:
        return 0
    return min((_hidden_from(use.node, use.idx, value, declared) for use in value.uses()), default=_ANY)


def _hidden_from(node: ir.Node, index: int, value: ir.Value, declared: Mapping[str, int]) -> int:
    kind, output = operator(node.domain, node.op_type), node.outputs[0]
    if index in kind.host or index in kind.host_if_constant:
        return _ANY  # kernels read the elements
    target = array(node.inputs[1]) if node.op_type == "Reshape" and index == 0 else None
    if target is not None and target.all():
        return _ANY  # no size is copied
    if node.op_type == "Gather" and index == 1 and node.attributes["axis"].as_int() == 0:
        return _hidden(output, declared)
    if kind.layout != "elementwise" or node.domain != "" or index in kind.shape_only:
        return 0
    found, own = rank(output), rank(value) or 0
    whole = declared.get(output.name or "") if found is None else found
    return _hidden(output, declared) if whole is None or whole <= own else whole - own

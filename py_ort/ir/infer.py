"""Types and shapes of values, one node at a time.

An operator's own `infer` goes first; where there is none, ONNX's C++ inference for a single node is asked. What is
found is a head start (ranks for the layout, dtypes for placement), never a requirement: a value may stay without
shape.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from py_ort.ir.control import infer_control
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import subgraphs
from py_ort.ir.onnx_calls import infer_outputs
from py_ort.ir.operators import operator
from py_ort.ir.schemas import CANONICAL_OPSET, schema
from py_ort.ir.shape_data import follow, known, shape_data
from py_ort.ir.value_types import apply_type


def infer_graph(graph: ir.Graph, opsets: dict[str, int] | None = None) -> None:
    """Infer the types of all values of a graph, in order, its subgraphs included."""
    for node in graph:
        infer_node(node, opsets)


def infer_node(
    node: ir.Node,
    opsets: dict[str, int] | None = None,
    visit: Callable[[ir.Graph], None] | None = None,
    *,
    strict: bool = False,
) -> None:
    """Infer the outputs' types and shapes of one node from its inputs'.

    Args:
        node: A node whose inputs were inferred before.
        opsets: Opset of each domain; the newest by default.
        visit: Infers the nodes of a subgraph; `infer_graph` by default.
        strict: Raise what ONNX says of inconsistent inputs, where otherwise the outputs just stay unknown.

    Raises:
        InvalidGraph: The inputs' ranks do not fit the operator; with `strict`, their shapes.
    """
    declared = operator(node.domain, node.op_type)
    version = (opsets or {}).get(node.domain) or (CANONICAL_OPSET if node.domain == "" else 1)
    found = schema(node.domain, node.op_type, version)
    # ONNX's own word is asked where inputs may be refused, if it has one (SimplifiedLayerNormalization it lacks).
    if declared.infer is not None and not (strict and node.domain == "" and found is not None):
        _ask(declared.infer, node)
        follow(node)
        return
    if subgraphs(node):
        infer_control(node, visit or (lambda graph: infer_graph(graph, opsets)))
        if node.domain == "":  # control flow; others (FlexAttention) have bodies that change numbers, not types
            return
    if found is None:
        return
    for output, result in zip(node.outputs, infer_outputs(node, found, version, strict=strict), strict=True):
        if result is not None:
            apply_type(output, result)
    if declared.infer is not None:
        _ask(declared.infer, node)
    if declared.refine is not None:
        _ask(declared.refine, node)
    follow(node)


def _ask(rule: Callable[[ir.Node], None], node: ir.Node) -> None:
    """Apply a rule, which assumes inputs of the ranks that the operator requires."""
    try:
        rule(node)
    except IndexError as e:
        raise inconsistent(
            node, "the ranks of its inputs do not fit the operator; correct the shapes that the model declares"
        ) from e


def infer_unknown(graph: ir.Graph) -> None:
    """Infer incomplete types and shapes again, after an input's became known."""
    for node in graph:
        if not subgraphs(node) and not all(_is_known(output.shape) for output in node.outputs):
            infer_again(node)


def infer_again(node: ir.Node) -> list[ir.Value]:
    """Infer a node whose inputs became known; return the outputs of which more is known now."""
    if all(map(_is_settled, node.outputs)):
        return []
    before = [(output.shape, shape_data(output)) for output in node.outputs]
    infer_node(node)
    better = []
    for output, (shape, elements) in zip(node.outputs, before, strict=True):
        if shape is not None and (output.shape is None or _unknown(output.shape) > _unknown(shape)):
            output.shape = shape
        if output.shape != shape or shape_data(output) != elements:
            better.append(output)
    return better


def _is_settled(value: ir.Value) -> bool:
    """Return True if inference can add nothing: all sizes are numbers or names, and no size depends on the elements."""
    if not _is_known(value.shape):
        return False
    elements = shape_data(value)
    if elements is None:
        return value.dtype not in (ir.DataType.INT64, ir.DataType.INT32)
    return all(map(known, elements))


def _is_known(shape: ir.Shape | None) -> bool:
    return shape is not None and not _unknown(shape)


def _unknown(shape: ir.Shape) -> int:
    return sum(isinstance(d, ir.SymbolicDim) and d.value is None for d in shape)

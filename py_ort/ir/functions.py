"""Operators that are made of others: functions of the model, and ONNX's own function bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import onnx
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import ORIGIN, add_constant, origins, replace_value
from py_ort.ir.infer import infer_node
from py_ort.ir.onnx_calls import dependent_body
from py_ort.ir.schemas import CANONICAL_OPSET, schema


def instantiate(node: ir.Node, function: ir.Function) -> list[ir.Node]:
    """Put a function's nodes in the place of a node that calls it.

    The node is removed; the new nodes are not brought to the newest form yet.

    Returns:
        The new nodes, in order.
    """
    graph = node.graph
    assert graph is not None
    values: dict[ir.Value, ir.Value | None] = dict(
        zip(function.inputs, (*node.inputs, *[None] * len(function.inputs)), strict=False)
    )
    attributes = {**{a.name: a for a in function.attributes.values() if a.value is not None}, **node.attributes}
    made: list[ir.Node] = []
    for inner in function:
        copy = _copy(inner, values, attributes)
        copy.meta[ORIGIN] = origins(node)
        graph.insert_before(node, copy)
        made.append(copy)
    for old, inner_output in zip(node.outputs, function.outputs, strict=False):
        new = values.get(inner_output)
        if new is not None:
            replace_value(old, new)
    graph.remove(node, safe=True)
    return made


def inline(
    graph: ir.Graph, inputs: Sequence[ir.Value], anchor: ir.Node, copies: list[ir.Node] | None = None
) -> list[ir.Value]:
    """Put copies of a subgraph's nodes and constants before a node; return its outputs, for these inputs.

    The nodes are still of the old form; `copies` gets them.
    """
    target = anchor.graph
    assert isinstance(target, ir.Graph)
    values: dict[ir.Value, ir.Value | None] = dict(zip(graph.inputs, inputs, strict=True))
    for name, constant in graph.initializers.items():
        assert constant.const_value is not None
        values[constant] = add_constant(target, constant.const_value, name)
    for node in graph:
        copy = _copy(node, values, {})
        copy.meta[ORIGIN] = origins(node)
        target.insert_before(anchor, copy)
        if copies is not None:
            copies.append(copy)
    found = [values.get(output, output) for output in graph.outputs]
    assert all(value is not None for value in found)
    return found  # type: ignore[return-value]


def inline_settled(graph: ir.Graph, inputs: Sequence[ir.Value], build: Builder) -> list[ir.Value]:
    """Do the same in a graph whose other nodes are of the newest form already."""
    assert build.settle is not None
    copies: list[ir.Node] = []
    outputs = inline(graph, inputs, build.anchor, copies)
    found: list[ir.Value] = [build.op("Identity", value) for value in outputs]  # they stay, whatever becomes of nodes
    build.settle(copies)
    for value in found:
        node = value.producer()
        assert node is not None
        infer_node(node)
    return found


def _copy(node: ir.Node, values: dict[ir.Value, ir.Value | None], attributes: Mapping[str, ir.Attr]) -> ir.Node:
    """Copy a node: `values` maps its inputs (outer values are kept), and receives its outputs."""
    inputs = [None if v is None else values.get(v, v) for v in node.inputs]
    made = ir.Node(
        node.domain,
        node.op_type,
        inputs,
        _attributes(node, values, attributes),
        num_outputs=len(node.outputs),
        overload=node.overload,
    )
    for old, new in zip(node.outputs, made.outputs, strict=True):
        values[old] = new
    return made


def _attributes(node: ir.Node, values: dict[ir.Value, ir.Value | None], given: Mapping[str, ir.Attr]) -> list[ir.Attr]:
    found = []
    for item in node.attributes.values():
        if item.is_ref():
            source = given.get(item.ref_attr_name or "")
            if source is not None:
                found.append(_given(item.name, source))
        elif item.type == ir.AttributeType.GRAPH:
            found.append(ir.AttrGraph(item.name, _copy_graph(item.value, values, given)))
        else:
            found.append(item)
    return found


def _given(name: str, source: ir.Attr) -> ir.Attr:
    """Return the attribute that the caller gave; of a graph, a copy for each node that reads it."""
    if source.type == ir.AttributeType.GRAPH:
        return ir.AttrGraph(name, _copy_graph(source.value, {}, {}))
    return ir.Attr(name, source.type, source.value)


def _copy_graph(
    graph: ir.Graph, values: dict[ir.Value, ir.Value | None], attributes: Mapping[str, ir.Attr]
) -> ir.Graph:
    inner = dict(values)
    inputs = []
    for value in graph.inputs:
        inner[value] = ir.Value(name=value.name, type=value.type, shape=value.shape)
        inputs.append(inner[value])
    constants = []
    for value in graph.initializers.values():
        inner[value] = ir.Value(name=value.name, type=value.type, shape=value.shape, const_value=value.const_value)
        constants.append(inner[value])
    nodes = [_copy(node, inner, attributes) for node in graph]
    outputs = [inner.get(v, v) for v in graph.outputs]
    return ir.Graph(inputs, outputs, nodes=nodes, initializers=constants, name=graph.name)  # type: ignore[arg-type]


def function_body(node: ir.Node) -> ir.Function | None:
    """Return ONNX's own function body of an operator, or None when it has none (for these input types)."""
    found = schema(node.domain, node.op_type, CANONICAL_OPSET if node.domain == "" else 1)
    if found is None:
        return None
    body = _plain_body(node.domain, node.op_type)
    if body is None and found.has_context_dependent_function:
        dependent = dependent_body(node, found, CANONICAL_OPSET)
        body = None if dependent is None else _function(dependent)
    return None if body is None else _with_defaults(body, found)


@lru_cache(256)
def _plain_body(domain: str, op_type: str) -> ir.Function | None:
    found = schema(domain, op_type, CANONICAL_OPSET if domain == "" else 1)
    if found is None or not found.has_function:
        return None
    versions = [v for v in found.function_opset_versions if v <= CANONICAL_OPSET]
    if not versions:
        return None
    return _function(found.get_function_with_opset_version(max(versions)))


def _function(serialized: bytes) -> ir.Function | None:
    proto = onnx.FunctionProto()
    proto.ParseFromString(serialized)
    made = {name for node in proto.node for name in node.output} | set(proto.input)
    while proto.output and proto.output[-1] not in made:  # optional outputs that this form does not give
        proto.output.pop()
    if not proto.node or not all(name in made for name in proto.output):
        return None
    return ir.serde.deserialize_function(proto)


def _with_defaults(body: ir.Function, found: Any) -> ir.Function:
    """Let attributes that the node leaves out have the operator's defaults."""
    for name, spec in found.attributes.items():
        known = body.attributes.get(name)
        if spec.default_value.type and (known is None or known.value is None):
            body.attributes[name] = ir.from_proto(spec.default_value)
    return body

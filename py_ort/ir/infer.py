"""Types and shapes of values, one node at a time.

An operator's own `infer` goes first; where there is none, ONNX's C++ inference for a single node is asked. What is
found is a head start (ranks for the layout, dtypes for placement), never a requirement: a value may stay without
shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir as ir

from py_ort.ir.control import infer_control
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import subgraphs
from py_ort.ir.long_list import LongList
from py_ort.ir.operators import operator
from py_ort.ir.schemas import CANONICAL_OPSET, schema
from py_ort.ir.shape_data import follow, known, shape_data
from py_ort.ir.value_types import apply_type, value_type

_DATA_LIMIT = 1024  # elements: constants up to this size are shown to ONNX's inference (shapes, axes, pads, scales)


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
    types: dict[str, Any] = {}
    data: dict[str, Any] = {}
    proto = _node_proto(node, types, data)
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            found, proto, types, data, opset_imports=[onnx.helper.make_opsetid(node.domain, version)]
        )
    except Exception as e:  # the C++ side raises several types
        if strict and isinstance(e, onnx.shape_inference.InferenceError):
            raise inconsistent(node, str(e)) from e
        inferred = {}
    for i, output in enumerate(node.outputs):
        result = inferred.get(f"o{i}")
        if result is not None:
            apply_type(output, result)
    if declared.infer is not None:
        _ask(declared.infer, node)
    if declared.refine is not None:
        _ask(declared.refine, node)
    follow(node)


def _ask(rule: Callable[[ir.Node], None], node: ir.Node) -> None:
    """Rules count on as many dimensions as the operator says."""
    try:
        rule(node)
    except IndexError as e:
        raise inconsistent(node, "its inputs have other numbers of dimensions than it takes") from e


def infer_unknown(graph: ir.Graph) -> None:
    """Infer again what was not wholly known, after something before it became known."""
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
    """Whether there is nothing to learn: sizes that are numbers or names, and no elements that sizes are made of."""
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


#: How the names of lists begin that say what the trees of an ensemble are, on which no type depends.
_TREES = ("nodes_", "leaf_", "target_", "class_")


def _node_proto(node: ir.Node, types: dict[str, Any], data: dict[str, Any]) -> onnx.NodeProto:
    """Describe the node to ONNX under short names: i0, i1, … and o0, o1, …; its inputs go into `types` and `data`."""
    proto = onnx.NodeProto()
    proto.op_type = node.op_type
    proto.domain = node.domain
    for i, value in enumerate(node.inputs):
        type_proto = None if value is None else value_type(value)
        name = "" if value is None else f"i{i}"
        proto.input.append(name)
        if value is None or type_proto is None:
            continue
        types[name] = type_proto
        if value.const_value is not None and value.const_value.size <= _DATA_LIMIT:
            data[name] = _tensor_proto(value.const_value)
    proto.output.extend(f"o{i}" for i in range(len(node.outputs)))
    for item in node.attributes.values():
        if not item.is_ref() and item.type not in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            if isinstance(item, LongList) and item.name.startswith(_TREES):
                continue
            proto.attribute.append(ir.serde.serialize_attribute(item))
    return proto


def _tensor_proto(tensor: ir.TensorProtocol) -> onnx.TensorProto:
    if tensor.dtype == ir.DataType.STRING:
        return ir.to_proto(tensor)
    return onnx.TensorProto(data_type=int(tensor.dtype), dims=tensor.shape.numpy(), raw_data=tensor.tobytes())

"""Graphs of .ort files: their nodes, constants and types as ONNX has them."""

from __future__ import annotations

from typing import cast

import onnx

from py_ort.compiler.load.ort_format import layout
from py_ort.compiler.load.ort_format.tables import Damaged, T
from py_ort.exceptions import NotImplemented

_PRIMITIVE = 0  # the kind of nodes that no provider compiled
_SIZE, _NAME = 1, 2
_NONE, _TENSOR, _SEQUENCE, _MAP = range(4)
_KIND = onnx.AttributeProto


def write_graph(graph: layout.Graph, to: onnx.GraphProto) -> None:
    """Write a graph as ONNX.

    Args:
        graph: The graph.
        to: Empty.

    Raises:
        Damaged: A required part is missing.
        NotImplemented: It has what only onnxruntime itself can use.
    """
    to.name = "graph"  # ONNX requires a name, and the format has none
    for tensor in graph.initializers:
        _write_tensor(tensor, to.initializer.add())
    for sparse in graph.sparse_initializers:
        made = to.sparse_initializer.add(dims=sparse.dims)
        _write_tensor(_there(sparse.values, "values"), made.values)
        _write_tensor(_there(sparse.indices, "indices"), made.indices)
    for node in graph.nodes:
        _write_node(node, to.node.add())
    types = {value.name: value for value in graph.values}
    for names, border in ((graph.inputs, to.input), (graph.outputs, to.output)):
        for name in names:
            _write_value(name, types.get(name), border.add())
    inside = {name for node in to.node for name in node.output} - {"", *graph.outputs}
    for name, value in types.items():
        if name in inside:  # it also has the types of constants, and of values of outer graphs
            _write_value(name, value, to.value_info.add())


def _write_node(node: layout.Node, to: onnx.NodeProto) -> None:
    if node.kind != _PRIMITIVE:
        raise NotImplemented(
            f"the node {node.name!r} was compiled by a provider of onnxruntime when the .ort file was written: give "
            "the ONNX file that it was made of",
            node=node.name,
            op_type=node.op_type,
            domain=node.domain,
        )
    to.name, to.doc_string, to.op_type, to.domain = node.name, node.doc, node.op_type, node.domain
    to.input.extend(node.inputs)
    to.output.extend(node.outputs)
    for item in node.attributes:
        _write_attribute(item, to.attribute.add())


def _write_attribute(item: layout.Attribute, to: onnx.AttributeProto) -> None:
    kind = cast(onnx.AttributeProto.AttributeType, item.kind)
    to.name, to.doc_string, to.type = item.name, item.doc, kind
    if kind == _KIND.FLOAT:
        to.f = item.f
    elif kind == _KIND.INT:
        to.i = item.i
    elif kind == _KIND.STRING:
        to.s = item.s
    elif kind == _KIND.TENSOR:
        _write_tensor(_there(item.t, item.name), to.t)
    elif kind == _KIND.GRAPH:
        write_graph(_there(item.g, item.name), to.g)
    elif kind == _KIND.FLOATS:
        to.floats.extend(item.floats)
    elif kind == _KIND.INTS:
        to.ints.extend(item.ints)
    elif kind == _KIND.STRINGS:
        to.strings.extend(item.strings)
    elif kind == _KIND.TENSORS:
        for tensor in item.tensors:
            _write_tensor(tensor, to.tensors.add())
    elif kind == _KIND.GRAPHS:
        for graph in item.graphs:
            write_graph(graph, to.graphs.add())
    else:
        raise Damaged(f"its attribute {item.name!r} is of kind {kind}")


def _write_tensor(tensor: layout.Tensor, to: onnx.TensorProto) -> None:
    if tensor.outside >= 0:
        raise NotImplemented(
            f"the initializer {tensor.name!r} lies in a file beside the .ort file, as in checkpoints for training: "
            "give the ONNX file that it was made of"
        )
    to.name, to.doc_string, to.data_type = tensor.name, tensor.doc, tensor.dtype
    to.dims.extend(tensor.dims)
    if tensor.dtype == onnx.TensorProto.STRING:
        to.string_data.extend(tensor.strings)
    else:
        to.raw_data = tensor.contents.tobytes()


def _write_value(name: str, value: layout.Value | None, to: onnx.ValueInfoProto) -> None:
    to.name = name
    if value is not None:
        to.doc_string = value.doc
        if value.type is not None:
            _write_type(value.type, to.type)


def _write_type(found: layout.Type, to: onnx.TypeProto) -> None:
    to.denotation = found.denotation
    if found.kind == _TENSOR:
        _write_tensor_type(_there(found.tensor, "type"), to.tensor_type)
    elif found.kind == _SEQUENCE:
        _write_type(_there(_there(found.sequence, "type").element, "element"), to.sequence_type.elem_type)
    elif found.kind == _MAP:
        pair = _there(found.map, "type")
        to.map_type.key_type = pair.key
        _write_type(_there(pair.value, "value"), to.map_type.value_type)
    elif found.kind != _NONE:
        raise Damaged(f"a value is of kind {found.kind}")


def _write_tensor_type(found: layout.TensorType, to: onnx.TypeProto.Tensor) -> None:
    to.elem_type = found.dtype
    if found.shape is None:
        return
    to.shape.SetInParent()  # a scalar has a shape without dimensions
    for dim in found.shape.dims:
        made = to.shape.dim.add(denotation=dim.denotation)
        if dim.value is not None and dim.value.kind == _SIZE:
            made.dim_value = dim.value.size
        elif dim.value is not None and dim.value.kind == _NAME:
            made.dim_param = dim.value.name


def _there(table: T | None, what: str) -> T:
    if table is None:
        raise Damaged(f"{what!r} is not there")
    return table

"""Spellings that onnxruntime also accepts are rewritten to the one form that the IR reads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import onnx
import onnx_ir as ir

from py_ort.compiler.load.sparse import dense_tensor
from py_ort.compiler.load.texts import make_readable
from py_ort.ir.constants import constant_tensor


def settle_spellings(model: onnx.ModelProto) -> frozenset[str]:
    """Normalize a model in place: texts, domain names, sizes, sparse tensors, constants of one name, types of outputs.

    Returns:
        The outputs that are sparse constants: sparse in runs, whatever the model declares, as in onnxruntime.

    Raises:
        InvalidGraph, NotImplemented, OutOfMemory: Of a sparse tensor; see `dense_tensor`.
    """
    make_readable(model)
    for imports in (model.opset_import, *(function.opset_import for function in model.functions)):
        for opset in imports:
            if opset.domain == "ai.onnx":  # the standard's own name of "", which most files have
                opset.domain = ""
    sparse = _settle_sparse_outputs(model.graph)
    _settle_graph(model.graph)
    for function in model.functions:
        _settle_nodes(function.node)
    return sparse


def _settle_sparse_outputs(graph: onnx.GraphProto) -> frozenset[str]:
    """Declare outputs that are sparse constants as dense, like the constants; return the names of these outputs."""
    sparse = {constant.values.name: constant for constant in graph.sparse_initializer}
    for node in graph.node:
        if _is_constant(node):
            held = [item.sparse_tensor for item in node.attribute if item.name == "sparse_value"]
            sparse |= dict.fromkeys(node.output, held[0]) if held else {}
    found = [output for output in graph.output if output.name in sparse]
    for output in found:
        constant = sparse[output.name]
        dense = onnx.helper.make_tensor_type_proto(constant.values.data_type, list(constant.dims))
        output.type.CopyFrom(dense)
    return frozenset(output.name for output in found)


def _settle_graph(graph: onnx.GraphProto) -> None:
    _forget_negative_dimensions(graph)
    _repeat_types(graph)
    for sparse in graph.sparse_initializer:
        tensor = dense_tensor(sparse)
        _forget_initializers(graph, {tensor.name})
        graph.initializer.append(tensor)
    del graph.sparse_initializer[:]
    _settle_nodes(graph.node)
    _settle_constants(graph)


def _settle_nodes(nodes: Any) -> None:
    for node in nodes:
        for item in node.attribute:
            if item.type == onnx.AttributeProto.GRAPH:
                _settle_graph(item.g)
            elif item.type == onnx.AttributeProto.SPARSE_TENSOR and node.op_type == "Constant":
                item.CopyFrom(onnx.helper.make_attribute("value", dense_tensor(item.sparse_tensor)))


def _forget_negative_dimensions(graph: onnx.GraphProto) -> None:
    """Some exporters write -1 for a dimension that is not known."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")


def _repeat_types(graph: onnx.GraphProto) -> None:
    """Give each output that is an input, and is listed without a type, the input's type."""
    bare = [value for value in graph.output if not value.HasField("type")]
    inputs = {value.name: value for value in graph.input} if bare else {}
    for value in bare:
        if value.name in inputs:
            value.type.CopyFrom(inputs[value.name].type)


def _settle_constants(graph: onnx.GraphProto) -> None:
    """Some exporters name two constants alike, or as an input. To onnxruntime the last Constant is that initializer."""
    names = [node.output[0] for node in graph.node if _is_constant(node)]
    others = {item.name for item in (*graph.initializer, *graph.input)}
    twice = {name for name, count in Counter(names).items() if count > 1 or name in others}
    if not twice:
        return
    _forget_initializers(graph, twice)
    settled: set[str] = set()
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        if not _is_constant(node) or node.output[0] not in twice:
            continue
        name = node.output[0]
        if name not in settled:
            settled.add(name)
            tensor = ir.to_proto(constant_tensor(ir.serde.deserialize_node(node)))
            tensor.name = name
            graph.initializer.append(tensor)
        del graph.node[index]


def _is_constant(node: onnx.NodeProto) -> bool:
    return node.op_type == "Constant" and len(node.output) == 1


def _forget_initializers(graph: onnx.GraphProto, names: set[str]) -> None:
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name in names:
            del graph.initializer[index]

"""Common subexpressions: equal nodes on equal inputs are one node; equal constants are one constant."""

from __future__ import annotations

import hashlib
from typing import Any

import onnx_ir as ir

from py_ort.ops import operator
from py_ort.ops.builder import all_graphs, array, remove, subgraphs
from py_ort.passes.pass_base import Pass

_SMALL = 4096  # bytes: constants up to here are compared by their contents at once, larger ones by a hash


class Subexpressions(Pass):
    """Within each graph; a subgraph's nodes are not shared with those around it."""

    def call(self, model: ir.Model) -> int:
        """Constants first: they make nodes equal."""
        count = 0
        for graph in all_graphs(model.graph):
            count += _share_constants(graph)
            count += _share_nodes(graph)
        return count


def _share_constants(graph: ir.Graph) -> int:
    seen: dict[Any, ir.Value] = {}
    sizes: dict[Any, int] = {}
    for value in graph.initializers.values():
        tensor = value.const_value
        if tensor is not None:
            kind = (tensor.dtype, tuple(tensor.shape.numpy()))
            sizes[kind] = sizes.get(kind, 0) + 1
    count = 0
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or value.is_graph_output() or isinstance(tensor, (ir.LazyTensor, ir.ExternalTensor)):
            continue
        kind = (tensor.dtype, tuple(tensor.shape.numpy()))
        if sizes[kind] < 2 or tensor.dtype == ir.DataType.STRING:
            continue
        key = (*kind, _contents(value))
        first = seen.setdefault(key, value)
        if first is not value:
            value.replace_all_uses_with(first)
            count += 1
    return count


def _contents(value: ir.Value) -> Any:
    contents = array(value)
    assert contents is not None
    if contents.nbytes > _SMALL and contents.strides and not any(contents.strides):
        return ("same", contents.reshape(-1)[:1].tobytes())  # a scalar, broadcast: cheap to tell
    data = contents.tobytes()
    return data if len(data) <= _SMALL else hashlib.blake2b(data).digest()


def _share_nodes(graph: ir.Graph) -> int:
    seen: dict[Any, ir.Node] = {}
    count = 0
    for node in list(graph):
        if subgraphs(node) or not operator(node.domain, node.op_type).pure or not node.outputs:
            continue
        key = _key(node)
        if key is None:
            continue
        first = seen.setdefault(key, node)
        if first is node or len(first.outputs) < len(node.outputs):
            continue
        if any(output.is_graph_output() for output in node.outputs):
            continue
        for old, new in zip(node.outputs, first.outputs, strict=False):
            old.replace_all_uses_with(new)
        remove(node)
        count += 1
    return count


def _key(node: ir.Node) -> Any | None:
    attributes = []
    for name, item in sorted(node.attributes.items()):
        value = item.value
        if item.type == ir.AttributeType.TENSOR:
            if value.dtype == ir.DataType.STRING:
                return None
            value = (value.dtype, tuple(value.shape.numpy()), value.tobytes())
        elif isinstance(value, (list, tuple)):
            value = tuple(value)
        attributes.append((name, value))
    try:
        key = (node.domain, node.op_type, tuple(id(v) for v in node.inputs), len(node.outputs), tuple(attributes))
        hash(key)
    except TypeError:
        return None
    return key

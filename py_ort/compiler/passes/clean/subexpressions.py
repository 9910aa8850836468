"""Common subexpressions: equal nodes on equal inputs are one node; equal constants are one constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.external_tensor import ExternalTensor
from py_ort.ir.graph import all_graphs, remove, subgraphs
from py_ort.ir.operators import operator

_SAMPLED = 256


class Subexpressions(Pass):
    """Works within each graph; a subgraph shares no nodes with its outer graph."""

    after = ("sizes",)  # sizes that are asked of the same input are the same nodes

    def __init__(self, *, constants: bool = True) -> None:
        """`constants`: share these, too."""
        self._constants = constants

    def call(self, model: ir.Model) -> int:
        """Constants first: they make nodes equal."""
        count = 0
        for graph in all_graphs(model.graph):
            count += _share_constants(graph) if self._constants else 0
            count += _share_nodes(graph)
        return count


def _share_constants(graph: ir.Graph) -> int:
    seen: dict[Any, list[tuple[ir.Value, np.ndarray]]] = {}
    count = 0
    for value in list(graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or not value.uses() or value.is_graph_output() or tensor.dtype == ir.DataType.STRING:
            continue
        if isinstance(tensor, (ir.LazyTensor, ExternalTensor)):
            continue
        contents = tensor.numpy()
        alike = seen.setdefault((tensor.dtype, contents.shape, _sample(contents)), [])
        for first, known in alike:
            if known is contents or _same(known, contents):
                value.replace_all_uses_with(first)
                count += 1
                break
        else:
            alike.append((value, contents))
    return count


def _sample(contents: np.ndarray) -> bytes:
    """A few elements: most constants that differ at all differ there, so that few are compared as a whole."""
    return bytes(contents.flat[:: max(1, contents.size // _SAMPLED)].tobytes())


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return True if all bits are equal (NaN too). A broadcast scalar is compared once."""
    if not any(a.strides) and not any(b.strides):
        return True  # the sample had it
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


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

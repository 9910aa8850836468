"""Computes nodes whose inputs are constants, and shapes that are known.

What may be computed is declared in `py_ort.compiler.folds`. The rest is left to the core, which computes what
depends on constants only once in a session.

Whatever reads what was folded is inferred again (`infer_again`), so that sizes behind computed pads are numbers, and
what is made of those is folded in the same walk.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds import folds
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.graph import (
    add_constant,
    all_graphs,
    all_nodes,
    array,
    dims,
    element_bytes,
    remove,
    subgraphs,
    tensor_of,
)
from py_ort.ir.infer import infer_again
from py_ort.ir.operators import operator
from py_ort.ir.shape_data import shape_data
from py_ort.uninterrupted import check

# A folded constant is sent to the page as a weight. Constants that old models compute from shapes (ConstantOfShape)
# may be large.
_LIMIT_BYTES = 1 << 30
_LIMIT_GROWTH = 64 << 20  # bytes that a result of other operators may be larger than its inputs
#: Of a model: bytes that its constants may still grow by. They may be twice as many as in its file, and _LIMIT_BYTES.
_ROOM = "py_ort.room_for_constants"


class Folding(Pass):
    """Constant folding."""

    def __init__(self, *, shapes: bool = True, inferred: bool = True, but: Collection[str] = ()) -> None:
        """Choose what to fold besides nodes on constants.

        Args:
            shapes: Also what depends on shapes only.
            inferred: Also what arithmetic with unknown sizes says, as that a difference of equal ones is 0.
            but: Operators to leave.
        """
        self._shapes, self._inferred, self._but = shapes, inferred, but

    def call(self, model: ir.Model) -> int:
        """Fold nodes in order, and infer the shapes of their readers again: known shapes allow more folds."""
        count = 0
        room = model.meta.setdefault(_ROOM, _LIMIT_BYTES + _bytes_of_constants(model))
        better: set[ir.Value | None] = set()
        for node in list(all_nodes(model.graph)):
            check()
            if node.graph is None or subgraphs(node) or _gives_out(node):
                continue
            if not better.isdisjoint(node.inputs):
                better.update(infer_again(node))
            results = self._fold(node, room)
            if results is None:
                continue
            room -= sum(map(_bytes, results))
            read = list(node.inputs)
            better.update(_replace(node, results))
            room += sum(map(_forget, read))
            count += 1
        model.meta[_ROOM] = room
        return count

    def _fold(self, node: ir.Node, room: float) -> Sequence[ir.TensorProtocol] | None:
        if node.domain != "" or node.op_type in self._but:
            return None
        if self._shapes and len(node.outputs) == 1 and (self._inferred or node.op_type in ("Shape", "Size")):
            known = _from_shapes(node)
            if known is not None:
                return [tensor_of(known)]
        if any(v is not None and v.const_value is None for v in node.inputs):
            return None
        fold = folds().get(node.op_type)
        if (
            fold is None
            or any(v is not None and isinstance(v.const_value, ir.LazyTensor) for v in node.inputs)
            or _too_big(node, room)
        ):
            return None
        results = fold(node, [array(v) for v in node.inputs])
        if results is None or len(results) != len(node.outputs):
            return None
        tensors = [tensor_of(contents) for contents in results]
        if any(o.dtype not in (None, t.dtype) for o, t in zip(node.outputs, tensors, strict=True)):
            return None  # a model that is wrong about its types
        return tensors


def _gives_out(node: ir.Node) -> bool:
    """Return True if a node only makes an output of a constant, which a graph cannot return itself."""
    return node.op_type == "Identity" and node.domain == "" and node.outputs[0].is_graph_output()


def _from_shapes(node: ir.Node) -> np.ndarray | None:
    """The elements that shape arithmetic gave, when all are numbers."""
    output = node.outputs[0]
    elements = shape_data(output)
    if elements is None or not all(isinstance(e, int) for e in elements) or output.dtype is None:
        return None
    known = dims(output)
    if known is None or len(known) > 1 or output.dtype.numpy().kind not in "iu" or (not known and len(elements) != 1):
        return None
    return np.array(elements, output.dtype.numpy()).reshape([len(elements)] if known else [])


def _too_big(node: ir.Node, room: float) -> bool:
    size = 1
    for output in node.outputs:
        known = dims(output)
        sizes = [d for d in known or () if isinstance(d, int)]
        if known is None or len(sizes) < len(known):
            if operator(node.domain, node.op_type).grows:
                return True
            continue
        size = max(size, math.prod(sizes))
    made = size * element_bytes(node.outputs[0].dtype)
    if made > room:
        return True
    if node.op_type == "ConstantOfShape":
        return made > _LIMIT_BYTES
    constants = [v.const_value for v in node.inputs if v is not None and v.const_value is not None]
    return made > sum(map(_bytes, constants)) + _LIMIT_GROWTH


def _bytes(tensor: ir.TensorProtocol) -> float:
    return tensor.size * element_bytes(tensor.dtype)


def _bytes_of_constants(model: ir.Model) -> float:
    values = (value for graph in all_graphs(model.graph) for value in graph.initializers.values())
    return sum(_bytes(value.const_value) for value in values if value.const_value is not None)


def _forget(value: ir.Value | None) -> float:
    """Remove a constant that nothing reads any more; return its bytes."""
    if value is None or value.uses() or value.const_value is None or value.is_graph_output() or value.graph is None:
        return 0.0
    value.graph.initializers.pop(value.name or "", None)
    return _bytes(value.const_value)


def _replace(node: ir.Node, results: Sequence[ir.TensorProtocol]) -> list[ir.Value]:
    graph = node.graph
    assert graph is not None
    made = []
    for output, tensor in zip(node.outputs, results, strict=True):
        if not output.uses() and not output.is_graph_output():
            continue
        value = add_constant(graph, tensor, output.name)
        made.append(value)
        for user, index in list(output.uses()):
            user.replace_input_with(index, value)
        if output.is_graph_output():
            copy = ir.Node("", "Identity", [value], num_outputs=1)
            graph.insert_after(node, copy)
            copy.outputs[0].type, copy.outputs[0].shape = value.type, value.shape
            name = output.name
            output.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
            output.name, copy.outputs[0].name = f"{name}__folded", name
    remove(node)
    return made

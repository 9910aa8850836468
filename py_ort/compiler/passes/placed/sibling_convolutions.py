"""Several 1x1 convolutions of one input → one convolution, whose readers each read a part of the channels.

Runs after `columns`, on nodes that are placed, where all readers take columns of wider tensors (see there): what is
loaded and launched for one serves all. What writes columns itself stays as it is, and so do larger windows: kernels may
need scratch memory for them, which grows with the channels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.placed.column_nodes import LANES, reads_columns, take_columns, width_of
from py_ort.compiler.passes.placed.columns import check_columns
from py_ort.compiler.passes.placed.kernel_pass import KernelPass
from py_ort.compiler.passes.placed.lifetimes import Lifetimes
from py_ort.ir.content_keys import derive
from py_ort.ir.graph import add_constant, all_graphs, attribute, dims, input_at, origins, rank, remove, set_origins
from py_ort.ir.operators import NHWC
from py_ort.schema.dialect import CONV_SCALES

#: Inputs with something for each output: weights, bias, the weights' scales.
_STACKED = (1, 2, CONV_SCALES)


class SiblingConvolutions(KernelPass):
    """Two or more that differ in their weights only."""

    after = ("columns",)  # which lets nodes read columns

    def call(self, model: ir.Model) -> int:
        """Look at the readers of each value."""
        count = 0
        for graph in all_graphs(model.graph):
            groups: dict[object, list[ir.Node]] = {}
            for node in graph:
                kind = self._kind(node, graph)
                if kind is not None:
                    groups.setdefault(kind, []).append(node)
            found = [nodes for nodes in groups.values() if len(nodes) > 1]
            lifetimes = Lifetimes(graph) if found else None
            for nodes in found:
                if lifetimes is not None and lifetimes.merge([node.outputs[0] for node in nodes]):
                    _merge(nodes)
                    count += 1
        return count

    def ensures(self, model: ir.Model) -> None:
        """Check that columns are within their tensors."""
        check_columns(model)

    def _kind(self, node: ir.Node, graph: ir.Graph) -> object:
        """Return the key of a convolution's siblings; None if it can have none."""
        if node.domain != NHWC or node.op_type != "Conv" or not self._takes(node) or attribute(node, "group", 1) != 1:
            return None
        if any(n != 1 for n in attribute(node, "kernel_shape", (0,))) or any(attribute(node, "pads", ())):
            return None
        if any(value is not None for value in (*node.inputs[3:CONV_SCALES], *node.inputs[CONV_SCALES + 1 :])):
            return None
        given = {index: value for index in _STACKED if (value := input_at(node, index)) is not None}
        parameters = list(given.values())
        if any(v.const_value is None or len(v.uses()) > 1 for v in parameters):
            return None
        made = node.outputs[0]
        channels = width_of(made)
        if channels is None or channels % LANES or rank(made) != 4 or made.is_graph_output():
            return None
        if not all(reads_columns(user, index, graph, self._takes) for user, index in made.uses()):
            return None
        same = sorted((name, str(item.value)) for name, item in node.attributes.items())
        return node.inputs[0], parameters[0].dtype, tuple(given), tuple(same)


def _merge(nodes: Sequence[ir.Node]) -> None:
    """The first one does it all."""
    node = nodes[0]
    first = 0
    widths = [width_of(each.outputs[0]) or 0 for each in nodes]
    for index in _STACKED:
        if input_at(node, index) is not None:
            node.replace_input_with(index, _stacked([each.inputs[index] for each in nodes], node))
    made = node.outputs[0]
    for each, width in zip(nodes, widths, strict=True):
        for user, index in list(each.outputs[0].uses()):
            take_columns(user, index, first, width)
            user.replace_input_with(index, made)
        first += width
    made.shape = ir.Shape([*(dims(made) or [])[:-1], first])
    set_origins(node, [name for each in nodes for name in origins(each)])
    for each in nodes[1:]:
        remove(each)


def _stacked(values: Sequence[ir.Value | None], node: ir.Node) -> ir.Value:
    """The constants one behind the other; evaluated when they are packed."""
    tensors = [v.const_value for v in values if v is not None and v.const_value is not None]
    shapes = [tensor.shape.numpy() for tensor in tensors]
    shape = [sum(each[0] for each in shapes), *shapes[0][1:]]

    def evaluate() -> ir.TensorProtocol:
        return ir.Tensor(np.concatenate([tensor.numpy() for tensor in tensors]), tensors[0].dtype)

    lazy = ir.LazyTensor(evaluate, dtype=tensors[0].dtype, shape=ir.Shape(shape), name=tensors[0].name)
    derive(lazy, tensors, "stacked")
    assert isinstance(node.graph, ir.Graph)
    return add_constant(node.graph, lazy, tensors[0].name)

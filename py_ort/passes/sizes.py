"""Sizes that are asked of tensors in the middle of the graph, but are those of inputs, or sums of them: asked there.

So a tensor is not kept, or made in a certain form, for its shape alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import Builder, dims, rank, replace_value
from py_ort.ops.shape_data import known, shape_data
from py_ort.passes.match import drop, made_by, nodes_of
from py_ort.passes.pass_base import Pass

_TERMS = 3


class Sizes(Pass):
    """Each Gather, or Slice, of one size out of a Shape."""

    def call(self, model: ir.Model) -> int:
        """Look at the main graph; subgraphs keep theirs."""
        named = _named(model.graph)
        nodes = [node for node in nodes_of(model, "Gather", "Slice") if node.graph is model.graph]
        return sum(_ask_inputs(node, named) for node in nodes)


def _named(graph: ir.Graph) -> dict[str, tuple[ir.Value, int]]:
    """Where the names of sizes are: an input, and its axis."""
    named: dict[str, tuple[ir.Value, int]] = {}
    for value in graph.inputs:
        for axis, size in enumerate(dims(value) or ()):
            if isinstance(size, ir.SymbolicDim) and size.value is not None:
                named.setdefault(str(size.value), (value, axis))
    return named


def _ask_inputs(node: ir.Node, named: dict[str, tuple[ir.Value, int]]) -> bool:
    shape = made_by(node.inputs[0], "Shape")
    if shape is None or shape.inputs[0] is None or shape.inputs[0].is_graph_input():
        return False
    found = shape_data(node.outputs[0])
    terms = _terms(found[0], named) if found is not None and len(found) == 1 else None
    if terms is None:
        return False
    build = Builder(node)
    form: Any = np.array(0, np.int64) if rank(node.outputs[0]) == 0 else np.zeros(1, np.int64)
    total: ir.Value | None = None
    for value, axis in terms:
        size = build.op("Gather", build.op("Shape", value), form + axis, axis=0)
        total = size if total is None else build.op("Add", total, size)
    assert total is not None
    replace_value(node.outputs[0], total)
    drop(node.outputs[0])
    return True


def _terms(element: Any, named: dict[str, tuple[ir.Value, int]]) -> list[tuple[ir.Value, int]] | None:
    """A name, or a sum of different names."""
    if not known(element) or isinstance(element, int):
        return None
    terms = [named.get(str(term)) for term in element._expr.as_ordered_terms()]
    return terms if len(terms) <= _TERMS and None not in terms else None  # type: ignore[return-value]

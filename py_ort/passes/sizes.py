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
        asked: dict[Any, ir.Value] = {}
        nodes = [node for node in nodes_of(model, "Gather", "Slice") if node.graph is model.graph]
        return sum(_ask_inputs(node, named, asked) for node in nodes)


def _named(graph: ir.Graph) -> dict[str, tuple[ir.Value, int]]:
    """Where the names of sizes are: an input, and its axis."""
    named: dict[str, tuple[ir.Value, int]] = {}
    for value in graph.inputs:
        for axis, size in enumerate(dims(value) or ()):
            if isinstance(size, ir.SymbolicDim) and size.value is not None:
                named.setdefault(str(size.value), (value, axis))
    return named


def _ask_inputs(node: ir.Node, named: dict[str, tuple[ir.Value, int]], asked: dict[Any, ir.Value]) -> bool:
    shape = made_by(node.inputs[0], "Shape")
    if shape is None or shape.inputs[0] is None or shape.inputs[0].is_graph_input():
        return False
    found = shape_data(node.outputs[0])
    terms = _terms(found[0], named) if found is not None and len(found) == 1 else None
    if terms is None:
        return False
    scalar = rank(node.outputs[0]) == 0
    key = str(found[0]), scalar  # type: ignore[index]
    if key not in asked:
        build = Builder(node)
        sizes = [
            build.op("Gather", build.op("Shape", value), np.array(axis if scalar else [axis], np.int64), axis=0)
            for value, axis in terms
        ]
        asked[key] = sizes[0]
        for size in sizes[1:]:
            asked[key] = build.op("Add", asked[key], size)
    replace_value(node.outputs[0], asked[key])
    drop(node.outputs[0])
    return True


def _terms(element: Any, named: dict[str, tuple[ir.Value, int]]) -> list[tuple[ir.Value, int]] | None:
    """A name, or a sum of different names."""
    if not known(element) or isinstance(element, int):
        return None
    terms = [named.get(str(term)) for term in element._expr.as_ordered_terms()]
    return terms if len(terms) <= _TERMS and None not in terms else None  # type: ignore[return-value]

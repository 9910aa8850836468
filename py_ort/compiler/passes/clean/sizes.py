"""Reads sizes from the model's inputs, if Shape nodes read equal sizes, or sums of them, from inner tensors.

So a tensor is not kept, or made in a certain form, for its shape alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import drop, made_by, nodes_of
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.builder import Builder
from py_ort.ir.graph import dims, rank, replace_value
from py_ort.ir.shape_data import known, shape_data

_TERMS = 3


class Sizes(Pass):
    """Each Gather, or Slice, of one size out of a Shape."""

    def call(self, model: ir.Model) -> int:
        """Look at the main graph; subgraphs keep theirs."""
        search = _Search()
        nodes = [node for node in nodes_of(model, "Gather", "Slice") if node.graph is model.graph]
        return sum(_ask_inputs(node, search) for node in nodes)


class _Search:
    """Finds the inputs that sizes come from.

    A name alone is not enough: models exist that call different sizes by one name. So a tensor is followed upwards,
    along the first operand that has the name, to the input that gave it its size.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[ir.Value, str], tuple[ir.Value, int] | None] = {}
        self.asked: dict[Any, ir.Value] = {}

    def origin(self, value: ir.Value | None, name: str) -> tuple[ir.Value, int] | None:
        """Return the input, and the axis of it that has this name."""
        path: list[ir.Value] = []
        found: tuple[ir.Value, int] | None = None
        while value is not None:
            if (value, name) in self._found:
                found = self._found[value, name]
                break
            path.append(value)
            node = value.producer()
            if node is None:
                axes = [i for i, size in enumerate(dims(value) or ()) if _is_name(size, name)]
                found = (value, axes[0]) if value.is_graph_input() and axes else None
                break
            value = next((v for v in node.inputs if v is not None and _has_name(v, name)), None)
        for each in path:
            self._found[each, name] = found
        return found


def _is_name(size: Any, name: str) -> bool:
    return isinstance(size, ir.SymbolicDim) and size.value is not None and str(size.value) == name


def _has_name(value: ir.Value, name: str) -> bool:
    return any(
        isinstance(size, ir.SymbolicDim) and size.value is not None and name in map(str, size.free_symbols())
        for size in dims(value) or ()
    )


def _ask_inputs(node: ir.Node, search: _Search) -> bool:
    shape = made_by(node.inputs[0], "Shape")
    if shape is None or shape.inputs[0] is None or shape.inputs[0].is_graph_input():
        return False
    found = shape_data(node.outputs[0])
    names = _names(found[0]) if found is not None and len(found) == 1 else []
    sources = [place for name in names if (place := search.origin(shape.inputs[0], name)) is not None]
    if not sources or len(sources) != len(names):
        return False
    scalar = rank(node.outputs[0]) == 0
    key = *sources, scalar
    if key not in search.asked:
        build = Builder(node)
        sizes = [
            build.op("Gather", build.op("Shape", value), np.array(axis if scalar else [axis], np.int64), axis=0)
            for value, axis in sources
        ]
        search.asked[key] = sizes[0]
        for size in sizes[1:]:
            search.asked[key] = build.op("Add", search.asked[key], size)
    replace_value(node.outputs[0], search.asked[key])
    drop(node.outputs[0])
    return True


def _names(element: Any) -> list[str]:
    """The names that an element is the sum of; none, when it is something else."""
    if not known(element) or isinstance(element, int):
        return []
    terms = element._expr.as_ordered_terms()
    return [str(term) for term in terms] if len(terms) <= _TERMS and all(term.is_symbol for term in terms) else []

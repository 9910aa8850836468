"""The dimensions of graph inputs: numbers where the user knows them, else names that expressions can be made of.

Shapes that the model noted for values inside are forgotten where the operator's own rule says more: exporters leave
stale ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from py_ort.exceptions import InvalidArgument
from py_ort.ops.builder import all_nodes
from py_ort.ops.control import note_declared_shapes
from py_ort.ops.infer import newest_opset, schema


def override_free_dimensions(
    model: ir.Model,
    by_name: Mapping[str, int],
    by_denotation: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Replace dimensions of the graph inputs by numbers or names, before shapes are inferred.

    A name that no input has is ignored, as in onnxruntime: one set of options serves several models.

    Args:
        model: Changed in place.
        by_name: Numbers for names.
        by_denotation: Numbers for denotations.
        shapes: Shapes of inputs; those of their dimensions that are open become these numbers.

    Raises:
        InvalidArgument: A number is negative.
    """
    if shapes:
        _fix_shapes(model, shapes)
    by_denotation = by_denotation or {}
    for name, number in {**by_name, **by_denotation}.items():
        if int(number) < 0:
            raise InvalidArgument(f"free dimension {name!r} is overridden by {number}: it must be 0 or more")
    names = _Names()
    for value in model.graph.inputs:
        if value.shape is None:
            continue
        dims: list[int | str] = []
        for i, dim in enumerate(value.shape):
            denotation = value.shape.get_denotation(i)
            nameless = names.of(f"{value.name}__{i}")  # so that shapes that depend on it can be told equal
            if isinstance(dim, int):
                dims.append(dim if dim >= 0 else nameless)  # some exporters write -1 for "any"
            elif dim.value is not None and str(dim) in by_name:
                dims.append(int(by_name[str(dim)]))
            elif denotation and denotation in by_denotation:
                dims.append(int(by_denotation[denotation]))
            elif dim.value is None or str(dim) in ("", "?"):
                dims.append(nameless)
            else:
                dims.append(names.of(str(dim)))
        value.shape = ir.Shape(dims)
    for node in all_nodes(model.graph):
        note_declared_shapes(node)
    for node in all_nodes(model.graph):
        ours = schema(node.domain, node.op_type, newest_opset() if node.domain == "" else 1) is not None
        for output in node.outputs:
            if output.shape is not None:
                output.shape = None if ours else ir.Shape([d if isinstance(d, int) else None for d in output.shape])


def _fix_shapes(model: ir.Model, shapes: Mapping[str, Sequence[int]]) -> None:
    for value in model.graph.inputs:
        given = shapes.get(value.name or "")
        if given is None or not isinstance(value.type, ir.TensorType):
            continue
        known = list(value.shape) if value.shape is not None else [None] * len(given)
        if len(known) == len(given):
            fixed = [d if isinstance(d, int) and d >= 0 else int(n) for d, n in zip(known, given, strict=True)]
            value.shape = ir.Shape(fixed)


class _Names:
    """Identifiers for dimension names, which may hold any character; different names stay different."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}

    def of(self, name: str) -> str:
        plain = re.sub(r"\W", "_", name)
        plain = plain if plain and not plain[0].isdigit() else f"d_{plain}"
        while self._taken.setdefault(plain, name) != name:
            plain += "_"
        return plain

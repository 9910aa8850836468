"""Gives the inputs' symbolic dimensions the numbers that the user knows, and names to those that have none."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from py_ort.exceptions import InvalidArgument


def override_free_dimensions(
    model: ir.Model, by_name: Mapping[str, int], by_denotation: Mapping[str, int] | None = None
) -> None:
    """Replace dimensions of the graph inputs by numbers or names, before shapes are inferred.

    A name that no input has is ignored, as in onnxruntime: one set of options serves several models.

    Raises:
        InvalidArgument: A number is negative.
    """
    by_denotation = by_denotation or {}
    for name, number in {**by_name, **by_denotation}.items():
        if int(number) < 0:
            raise InvalidArgument(f"free dimension {name!r} is overridden by {number}: it must be 0 or more")
    for value in model.graph.inputs:
        if value.shape is None:
            continue
        dims: list[int | str] = []
        for i, dim in enumerate(value.shape):
            denotation = value.shape.get_denotation(i)
            nameless = f"{value.name}__{i}"  # so that shapes that depend on it can be told equal
            if isinstance(dim, int):
                dims.append(dim if dim >= 0 else nameless)  # some exporters write -1 for "any"
            elif dim.value is not None and str(dim) in by_name:
                dims.append(int(by_name[str(dim)]))
            elif denotation and denotation in by_denotation:
                dims.append(int(by_denotation[denotation]))
            elif dim.value is None or str(dim) in ("", "?"):
                dims.append(nameless)
            else:
                dims.append(str(dim))
        value.shape = ir.Shape(dims)

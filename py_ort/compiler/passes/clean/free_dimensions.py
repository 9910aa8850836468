"""The dimensions of graph inputs: numbers where the user knows them, else names that expressions can be made of.

Shapes that the model noted for values inside are forgotten where the operator's own rule says more: exporters leave
stale ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from py_ort.compiler.passes.pass_base import Pass
from py_ort.exceptions import InvalidArgument
from py_ort.ir.graph import all_nodes
from py_ort.ir.schemas import CANONICAL_OPSET, schema
from py_ort.ops.control import note_declared_shapes


class FreeDimensions(Pass):
    """A name that no input has is ignored, as in onnxruntime: one set of options serves several models."""

    after = ("constants",)  # initializers are no inputs any more

    def __init__(
        self,
        by_name: Mapping[str, int],
        by_denotation: Mapping[str, int] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        """Numbers for dimensions.

        Args:
            by_name: Numbers for names.
            by_denotation: Numbers for denotations.
            shapes: Shapes of inputs; those of their dimensions that are open become these numbers.

        Raises:
            InvalidArgument: A number is negative. `call` raises it for shapes that the model's inputs cannot have.
        """
        self._by_name, self._by_denotation, self._shapes = by_name, by_denotation or {}, shapes or {}
        for name, number in {**by_name, **self._by_denotation}.items():
            if int(number) < 0:
                raise InvalidArgument(f"free dimension {name!r} is overridden by {number}: it must be 0 or more")

    def requires(self, model: ir.Model) -> None:
        """Any model: this comes before all else."""

    def call(self, model: ir.Model) -> int:
        """Give the inputs' dimensions numbers or names; return how many got a number."""
        count = _open(model)
        _fix_shapes(model, self._shapes)
        names = _Names()
        for value in model.graph.inputs:
            if value.shape is not None:
                value.shape = ir.Shape([self._settled(value, i, names) for i in range(value.shape.rank())])
        _forget_stale_shapes(model)
        return count - _open(model)

    def ensures(self, model: ir.Model) -> None:
        """Every dimension is a number or a name, and none has a name that was to be a number."""
        for value in model.graph.inputs:
            for dim in value.shape or ():
                assert isinstance(dim, int) or dim.value is not None, f"a dimension of {value.name} has no name"
                assert str(dim) not in self._by_name, f"dimension {dim} of {value.name} is still free"

    def _settled(self, value: ir.Value, axis: int, names: _Names) -> int | str:
        assert value.shape is not None
        dim, denotation = value.shape[axis], value.shape.get_denotation(axis)
        nameless = names.of(f"{value.name}__{axis}")  # so that shapes that depend on it can be told equal
        if isinstance(dim, int):
            return dim if dim >= 0 else nameless  # some exporters write -1 for "any"
        if dim.value is not None and str(dim) in self._by_name:
            return int(self._by_name[str(dim)])
        if denotation and denotation in self._by_denotation:
            return int(self._by_denotation[denotation])
        return nameless if dim.value is None or str(dim) in ("", "?") else names.of(str(dim))


def _open(model: ir.Model) -> int:
    """How many dimensions are no number yet."""
    return sum(not isinstance(dim, int) or dim < 0 for value in model.graph.inputs for dim in value.shape or ())


def _forget_stale_shapes(model: ir.Model) -> None:
    for node in all_nodes(model.graph):
        note_declared_shapes(node)
    for node in all_nodes(model.graph):
        ours = schema(node.domain, node.op_type, CANONICAL_OPSET if node.domain == "" else 1) is not None
        for output in node.outputs:
            if output.shape is not None:
                output.shape = None if ours else ir.Shape([d if isinstance(d, int) else None for d in output.shape])


def _fix_shapes(model: ir.Model, shapes: Mapping[str, Sequence[int]]) -> None:
    for value in model.graph.inputs:
        given = shapes.get(value.name or "")
        if given is None or not isinstance(value.type, ir.TensorType):
            continue
        known = list(value.shape) if value.shape is not None else [None] * len(given)
        wanted = [int(n) for n in given]
        fits = len(known) == len(wanted) and all(n >= 0 for n in wanted)
        if not fits or any(isinstance(d, int) and 0 <= d != n for d, n in zip(known, wanted, strict=True)):
            declared = ", ".join("?" if d is None else str(d) for d in known)
            raise InvalidArgument(
                f"input {value.name!r} cannot have the shape {wanted}: the model says [{declared}], "
                "of which only names and -1 may become numbers (0 or more)"
            )
        value.shape = ir.Shape(wanted)


class _Names:
    """Identifiers for dimension names, which may hold any character; different names stay different."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}

    def of(self, name: str) -> str:
        plain = re.sub(r"\W", "_", name)
        plain = plain if plain and not plain[0].isdigit() else f"d_{plain}"
        while self._used.setdefault(plain, name) != name:
            plain += "_"
        return plain

"""A session's changes to a model between reading and compiling it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.exceptions import InvalidArgument

if TYPE_CHECKING:
    import onnx_ir as ir

    from py_ort.compiler.load import LoadedModel
    from py_ort.runtime.options import SessionOptions


@dataclass(frozen=True)
class ModelChanges:
    """Changes to a model; False if there are none.

    Attributes:
        initializers: Other values for initializers, by name.
        external: Values of initializers whose data are outside the model, by name.
        files: Contents of files of external data, by the model's name of the file.
        fed: Initializers that are also inputs and are fed, so that they are not constants.
        outputs: The only outputs to compute.
        seed: Seed of random operators without a seed of their own.
    """

    initializers: Mapping[str, np.ndarray] = field(default_factory=dict)
    external: Mapping[str, np.ndarray] = field(default_factory=dict)
    files: Mapping[str, memoryview] = field(default_factory=dict)
    fed: frozenset[str] = frozenset()
    outputs: Sequence[str] | None = None
    seed: int | None = None

    def __bool__(self) -> bool:
        return (
            bool(self.initializers or self.external or self.files or self.fed or self.outputs is not None)
            or self.seed is not None
        )

    @property
    def replaced(self) -> Mapping[str, np.ndarray]:
        """All values of `initializers` and `external`, by name."""
        return {**self.initializers, **self.external}

    def but(self, fed: frozenset[str], outputs: Sequence[str] | None) -> ModelChanges:
        """Return the changes with other fed initializers and outputs."""
        return replace(self, fed=fed, outputs=outputs)

    def apply(self, loaded: LoadedModel) -> None:
        """Change a model.

        Raises:
            InvalidArgument: The model has no such initializer, or its type or shape differs.
        """
        graph = loaded.model.graph
        for name, array in self.replaced.items():
            _replace(graph, name, array)
        for name in self.fed:
            graph.initializers.pop(name).const_value = None
        if self.outputs is not None:
            kept = [value for value in graph.outputs if value.name in self.outputs]
            graph.outputs[:] = kept
        if self.seed is not None:
            _seed(loaded.model, self.seed)


def changes_of(options: SessionOptions) -> ModelChanges:
    """Return the changes that options make to a model each time it is read."""
    from py_ort.runtime.available import seed

    return ModelChanges(
        initializers={name: value.numpy() for name, value in options._initializers.items()},
        external={name: value.numpy() for name, value in options._external_initializers.items()},
        files=options._files,
        seed=seed(),
    )


def _replace(graph: ir.Graph, name: str, array: np.ndarray) -> None:
    if name not in graph.initializers:
        raise InvalidArgument(
            f"the model has no initializer {name!r}: it has {', '.join(map(repr, list(graph.initializers)[:20]))}"
        )
    old, new = graph.initializers[name].const_value, _tensor(name, array)
    if old is not None and (old.dtype, list(old.shape)) != (new.dtype, list(new.shape)):
        raise InvalidArgument(
            f"initializer {name!r} is {old.dtype.name.lower()}{list(old.shape)}; "
            f"got {new.dtype.name.lower()}{list(new.shape)}"
        )
    graph.initializers[name].const_value = new


def _tensor(name: str, array: np.ndarray) -> Any:
    import onnx_ir

    return onnx_ir.tensor(array, name=name)


def _seed(model: ir.Model, seed: int) -> None:
    import onnx_ir

    from py_ort.ir.graph import all_nodes
    from py_ort.ir.operators import operator

    random = (n for n in all_nodes(model.graph) if not operator(n.domain, n.op_type).pure and n.op_type != "Dropout")
    for index, node in enumerate(random):
        if "seed" not in node.attributes:
            node.attributes["seed"] = onnx_ir.AttrFloat32("seed", float((seed + index) % 2**24))

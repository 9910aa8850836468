"""The inputs of an ONNX or `.pyort` file, read without a session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from py_ort.compiler import NodeArg
from py_ort.compiler.load import load_model
from py_ort.compiler.package.format import is_package
from py_ort.testing.accepted_values import accepted_values


@dataclass(frozen=True)
class ModelInputs:
    """The inputs of a model.

    Attributes:
        args: Inputs that a run needs.
        overridable: Initializers that a run may replace.
        accepted: Numbers that the model has branches for, by input; see `accepted_values`.
    """

    args: Sequence[NodeArg]
    overridable: Sequence[NodeArg] = ()
    accepted: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: str | os.PathLike[str] | bytes) -> ModelInputs:
        """Read them.

        Args:
            model: A file, or its bytes.

        Raises:
            PyOrtError: As `load_model`, or `Package`, does.
        """
        if is_package(model):
            from py_ort.compiler.package.read import Package

            return cls(Package(model).header.inputs)
        loaded = load_model(model).model
        all_args = [(NodeArg.of(value), value.is_initializer()) for value in loaded.graph.inputs]
        return cls(
            [arg for arg, constant in all_args if not constant],
            [arg for arg, constant in all_args if constant],
            accepted_values(loaded),
        )

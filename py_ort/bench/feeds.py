"""Random feeds for a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from py_ort.exceptions import InvalidArgument
from py_ort.plan.node_arg import NodeArg

_NUMPY = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "bool": "bool",
    **{f"{u}int{bits}": f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)},
}


def random_feeds(
    inputs: Sequence[NodeArg], shapes: Mapping[str, Sequence[int]], seed: int = 7
) -> dict[str, np.ndarray]:
    """Return an array for each input: floats in [-1, 1), integers 0 or 1.

    Args:
        inputs: As `InferenceSession.get_inputs()` gives them.
        shapes: Shapes by input name, for those that the model leaves open; an open first axis is 1 by default.
        seed: Of the generator.

    Raises:
        InvalidArgument: An open shape was not given, or the input is not a numeric tensor.
    """
    rng = np.random.default_rng(seed)
    return {arg.name: _random(rng, arg, shapes.get(arg.name)) for arg in inputs}


def _random(rng: np.random.Generator, arg: NodeArg, shape: Sequence[int] | None) -> np.ndarray:
    dims: list[int | str | None] = list(shape if shape is not None else arg.shape or [])
    if dims and not isinstance(dims[0], int):
        dims[0] = 1
    dtype = _NUMPY.get(arg.type.removeprefix("tensor(").removesuffix(")"))
    if dtype is None:
        raise InvalidArgument(f"input {arg.name!r} is {arg.type}: give it a file")
    if open_dims := [d for d in dims if not isinstance(d, int)]:
        raise InvalidArgument(
            f"input {arg.name!r} has the shape {arg.shape}: give {open_dims} a size (--shape {arg.name}=1x3x224x224)"
        )
    sizes = [int(d) for d in dims if d is not None]
    if dtype.startswith("float"):
        return rng.uniform(-1, 1, sizes).astype(dtype)
    return rng.integers(0, 2, sizes).astype(dtype)

"""Random feeds for a model's inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from py_ort.compiler import NodeArg
from py_ort.exceptions import InvalidArgument
from py_ort.runtime.values.feeds import TYPE_NAMES
from py_ort.testing.random_sizes import RandomSizes
from py_ort.wire.tensors import NUMPY

#: Heights and widths to try, in this order, for images whose size the model leaves open.
IMAGE_SIZES = ((320, 320), (224, 224), (48, 320), (64, 64))
_DTYPES = {f"tensor({name})": NUMPY[elem_type] for elem_type, name in TYPE_NAMES.items() if elem_type in NUMPY}


def random_feeds(
    inputs: Sequence[NodeArg],
    shapes: Mapping[str, Sequence[int]] | None = None,
    image_size: tuple[int, int] = IMAGE_SIZES[0],
    seed: int = 7,
    *,
    given: Mapping[str, np.ndarray] | None = None,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, np.ndarray]:
    """Return an array for each input: floats in [-1, 1), integers and booleans 0 or 1 (masks 1), strings "text".

    Args:
        inputs: As `InferenceSession.get_inputs()` gives them.
        shapes: Shapes by input name. For what is open see `RandomSizes`.
        image_size: Height and width of images.
        seed: Seed of the generator.
        given: Feeds that are not random; the other inputs get sizes that fit.
        dims: Numbers for names of dimensions.
        values: Numbers of inputs that accept certain numbers only; the first is used. See `accepted_values`.

    Raises:
        InvalidArgument: An input is not a tensor, or nothing is known of its shape; a shape does not fit.
    """
    rng = np.random.default_rng(seed)
    given, values = given or {}, values or {}
    sizes = RandomSizes(
        inputs,
        {**(shapes or {}), **{n: a.shape for n, a in given.items() if isinstance(a, np.ndarray)}},
        dims,
        image_size,
    )
    shapes = shapes or {}
    return {
        arg.name: given[arg.name]
        if arg.name in given
        else _random(rng, arg, sizes, arg.name in shapes, values.get(arg.name, ()))
        for arg in inputs
    }


def candidates(
    inputs: Sequence[NodeArg], shapes: Mapping[str, Sequence[int]] | None = None, **options: Any
) -> Iterator[dict[str, np.ndarray]]:
    """Yield feeds of each of the `IMAGE_SIZES` that make a difference; options as for `random_feeds`."""
    seen = set()
    for size in IMAGE_SIZES:
        feeds = random_feeds(inputs, shapes, size, **options)
        key = tuple(array.shape for array in feeds.values())
        if key not in seen:
            seen.add(key)
            yield feeds


def _random(
    rng: np.random.Generator, arg: NodeArg, sizes: RandomSizes, shaped: bool, values: Sequence[int]
) -> np.ndarray:
    dtype = _DTYPES.get(arg.type)
    if dtype is None:
        raise InvalidArgument(f"input {arg.name!r} is {arg.type}: give it a file")
    if arg.dims is None and not shaped:
        raise InvalidArgument(f"input {arg.name!r} may have any shape: give it one")
    shape = sizes.of(arg)
    if dtype.kind == "O":
        return np.full(shape, "text", object)
    if values:
        return np.full(shape, values[0], dtype)
    if dtype.kind in "iub":
        ones = np.ones(shape, dtype)
        return ones if "mask" in arg.name.lower() else rng.integers(0, 2, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)

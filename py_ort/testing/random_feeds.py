"""Random feeds for a model's inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from py_ort.exceptions import InvalidArgument
from py_ort.plan import NodeArg
from py_ort.values.feeds import TYPE_NAMES
from py_ort.wire.tensors import NUMPY

#: Heights and widths to try, in this order, for images whose size the model leaves open.
IMAGE_SIZES = ((320, 320), (224, 224), (48, 320), (64, 64))
_DTYPES = {f"tensor({name})": NUMPY[elem_type] for elem_type, name in TYPE_NAMES.items() if elem_type in NUMPY}
_SEQUENCE = re.compile(r"seq|len|token|time", re.IGNORECASE)


def random_feeds(
    inputs: Sequence[NodeArg],
    shapes: Mapping[str, Sequence[int]] | None = None,
    image_size: tuple[int, int] = IMAGE_SIZES[0],
    seed: int = 7,
) -> dict[str, np.ndarray]:
    """Return an array for each input: floats in [-1, 1), integers and booleans 0 or 1, strings "text".

    Args:
        inputs: As `InferenceSession.get_inputs()` gives them.
        shapes: Shapes by input name. An open dimension is 128 if its name speaks of a sequence, `image_size` if it is
            one of the last two of four, else 1.
        image_size: Height and width of images.
        seed: Of the generator.

    Raises:
        InvalidArgument: An input is not a tensor, or nothing is known of its shape.
    """
    rng = np.random.default_rng(seed)
    return {arg.name: _random(rng, arg, (shapes or {}).get(arg.name), image_size) for arg in inputs}


def candidates(
    inputs: Sequence[NodeArg], shapes: Mapping[str, Sequence[int]] | None = None
) -> Iterator[dict[str, np.ndarray]]:
    """Yield feeds of each of the `IMAGE_SIZES` that make a difference."""
    seen = set()
    for size in IMAGE_SIZES:
        feeds = random_feeds(inputs, shapes, size)
        key = tuple(array.shape for array in feeds.values())
        if key not in seen:
            seen.add(key)
            yield feeds


def _random(
    rng: np.random.Generator, arg: NodeArg, shape: Sequence[int] | None, image_size: tuple[int, int]
) -> np.ndarray:
    dtype = _DTYPES.get(arg.type)
    if dtype is None:
        raise InvalidArgument(f"input {arg.name!r} is {arg.type}: give it a file")
    if shape is None and arg.dims is None:
        raise InvalidArgument(f"input {arg.name!r} may have any shape: give it one (--shape {arg.name}=1x3x224x224)")
    open_shape = arg.shape or []
    dims = (
        list(shape) if shape is not None else [_size(open_shape, axis, image_size) for axis in range(len(open_shape))]
    )
    if dtype.kind == "O":
        return np.full(dims, "text", object)
    if dtype.kind in "iub":
        return rng.integers(0, 2, dims).astype(dtype)
    return rng.uniform(-1, 1, dims).astype(dtype)


def _size(shape: Sequence[int | str | None], axis: int, image_size: tuple[int, int]) -> int:
    dim = shape[axis]
    if isinstance(dim, int):
        return dim
    if dim is not None and _SEQUENCE.search(dim):
        return 128
    return image_size[axis - 2] if len(shape) == 4 and axis >= 2 else 1

"""A motif, and the values on which motifs are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from random_graphs import RandomGraph, Shape

Make = Callable[[RandomGraph, str, Shape], str]


@dataclass(frozen=True)
class Motif:
    """Nodes on an image [n, c, h, w], and the passes that must find something to change in them.

    Attributes:
        make: Adds the nodes; returns the last value.
        passes: Names of the passes.
        provider: The first provider.
        known: True if sizes of the input must be numbers, False if names, None for both.
        manifests: Additional abilities of the provisional manifests, and options.
    """

    make: Make
    passes: tuple[str, ...]
    provider: str = "webgpu"
    known: bool | None = None
    manifests: dict[str, Any] = field(default_factory=dict)


class Motifs(dict[str, Motif]):
    """The motifs of a module, by name, in the order in which they stand there."""

    def motif(self, *passes: str, **options: Any) -> Callable[[Make], Make]:
        """Register a function by its name."""

        def register(make: Make) -> Make:
            name = make.__name__.strip("_").replace("_", " ")
            provider, known = options.pop("provider", "webgpu"), options.pop("known", None)
            self[name] = Motif(make, passes, provider, known, options)
            return make

        return register


def image_of(g: RandomGraph, x: str, shape: Shape, channels: int) -> tuple[str, Shape]:
    """Make this number of channels, by a convolution and a function that its kernel does not include."""
    made = (shape[0], channels, *shape[2:])
    return g.op("Neg", [g.op("Conv", [x, g.floats(channels, shape[1], 1, 1)], made)], made), made


def rows_of(g: RandomGraph, x: str, shape: Shape, width: int) -> tuple[str, Shape]:
    """[n, h, width]."""
    flat = g.op("ReduceMean", [x, g.ints(1)], (shape[0], shape[2], shape[3]), keepdims=0)
    made = (shape[0], shape[2], width)
    return g.op("MatMul", [flat, g.floats(shape[3], width)], made), made

"""Drafts of drawn operators: a node to be tried, and the values that a graph has for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np


class Draft(NamedTuple):
    """A node to try."""

    op_type: str
    inputs: list[str]
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1


class Values(Protocol):
    """Values from which a graph draws."""

    decide: random.Random

    def value(self, kinds: str = "f", rank: int | None = None, least: int = 0) -> str:
        """Return a value with such a dtype's kind and rank; a new one if there is none."""

    def array(self, name: str) -> np.ndarray:
        """Return its contents."""

    def leaf(self, contents: Any) -> str:
        """Return a new constant, or a new input."""

    def fixed(self, contents: Any) -> str:
        """Return a new constant."""

    def floats(self, *shape: int) -> str:
        """Return a new leaf of floats."""


Draw = Callable[[Values], Draft]


class Draws(list[Draw]):
    """The functions of a module, each as often as its weight."""

    def weighted(self, weight: int = 1) -> Callable[[Draw], Draw]:
        """Register a function."""

        def register(draw: Draw) -> Draw:
            self.extend([draw] * weight)
            return draw

        return register


def drawn_axis(g: Values, name: str) -> int:
    rank = g.array(name).ndim
    return g.decide.randrange(-rank, rank) if rank else 0


def some_axes(g: Values, name: str) -> list[int]:
    rank = g.array(name).ndim
    axes = g.decide.sample(range(rank), g.decide.randint(0, rank))
    return [axis - rank if g.decide.random() < 0.3 else axis for axis in axes]


def other_sizes(g: Values, name: str) -> list[int]:
    """A shape that broadcasts to a value's."""
    shape = [d if g.decide.random() < 0.6 else 1 for d in g.array(name).shape]
    return shape[g.decide.randint(0, len(shape)) :] if g.decide.random() < 0.4 else shape

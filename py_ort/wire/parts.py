"""Bytes to serve in pieces: those that are there, and those that are made when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class LazyPart:
    """Bytes that are made on demand, perhaps more than once.

    Attributes:
        size: How many.
        make: Returns them.
    """

    size: int
    make: Callable[[], memoryview]


Part: TypeAlias = "bytes | bytearray | memoryview | LazyPart"


def size_of(part: Part) -> int:
    """Return the number of bytes."""
    return part.size if isinstance(part, LazyPart) else memoryview(part).nbytes

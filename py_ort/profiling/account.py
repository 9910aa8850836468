"""The time that the creation of a session took."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Account(NamedTuple):
    """Phases of a session's creation, by `time.perf_counter()`.

    Attributes:
        phases: Name and begin of each, in order.
        ended: End of the last phase.
        compiler: Milliseconds of the compiler's stages, in order; empty if the plan was in the cache.
    """

    phases: tuple[tuple[str, float], ...] = ()
    ended: float = 0.0
    compiler: Mapping[str, float] = MappingProxyType({})

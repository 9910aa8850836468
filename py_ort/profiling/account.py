"""What the making of a session took."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Account(NamedTuple):
    """When the phases of a session's making began, and when the last one ended (`time.perf_counter()`).

    Attributes:
        phases: Name and begin of each, in order.
        ended: When the last one did.
        compiler: Milliseconds of the compiler's stages, in order; none when the plan was in the cache.
    """

    phases: tuple[tuple[str, float], ...] = ()
    ended: float = 0.0
    compiler: Mapping[str, float] = MappingProxyType({})

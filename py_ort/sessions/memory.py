"""What a session holds in the page: its plan for all shapes, and those for shapes that it saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py_ort.browser.backend import Backend
from py_ort.exceptions import NoSuchSession

Memory = dict[str, dict[str, int]]


def memory_of(backend: Backend, others: Iterable[int]) -> Memory:
    """Ask the page for the memory of a session, in bytes by provider.

    Args:
        backend: Of the session.
        others: The page's sessions for shapes that were seen: they share the weights, and have arenas of their own.
    """
    together: Memory = backend.stats(backend.session)["memory"]
    for session in others:
        try:
            told = backend.stats(session)["memory"]
        except NoSuchSession:  # it made room for another meanwhile
            continue
        for provider, more in told.items():
            _add(together.setdefault(provider, dict.fromkeys(more, 0)), more, provider)
    return together


def _add(total: dict[str, int], more: Mapping[str, Any], provider: str) -> None:
    total["weights"] += more["weights"] - more["shared"]
    # Runs follow each other. In the heap they give back what they needed; buffers stay.
    total["peak"] = max(total["peak"], more["peak"])
    total["arena"] = max(total["arena"], more["arena"]) if provider == "wasm" else total["arena"] + more["arena"]

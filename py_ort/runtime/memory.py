"""A session's memory in the page: of its plan for all shapes, and of plans for single shapes.

On the GPU, `peak` is the largest sum of bytes of live tensors over all commands, plus the memory of recordings; an
output in place of an input counts once. It is the lower bound of the arena. `tests/models/test_arena.py` checks that
the arena of static models stays within 10 % of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py_ort.exceptions import NoSuchSession, ProtocolError
from py_ort.providers import on_device
from py_ort.runtime.loaded import Loaded
from py_ort.runtime.page_runtime import PageRuntime

Memory = dict[str, dict[str, int]]
_KEYS = {"weights", "shared", "arena", "peak"}


def memory_of(runtime: PageRuntime, session: Loaded, others: Iterable[Loaded]) -> Memory:
    """Ask the page for the memory of a session, in bytes by provider.

    Args:
        runtime: The session's share of the page.
        session: The session in the page.
        others: The page's sessions for single shapes, which share the weights and have their own arenas.
    """
    together = _told(runtime, session)
    for other in others:
        try:
            told = _told(runtime, other)
        except NoSuchSession:  # it was released for another one meanwhile
            continue
        for provider, more in told.items():
            _add(together.setdefault(provider, dict.fromkeys(more, 0)), more, provider)
    return together


def _told(runtime: PageRuntime, session: Loaded) -> Memory:
    memory = runtime.session_stats(session).get("memory")
    whole = isinstance(memory, dict) and all(isinstance(of, dict) and of.keys() >= _KEYS for of in memory.values())
    if not whole:
        raise ProtocolError(f"the page's account of a session's memory is none: {memory!r:.100}")
    return memory  # type: ignore[return-value]


def _add(total: dict[str, int], more: Mapping[str, Any], provider: str) -> None:
    total["weights"] += more["weights"] - more["shared"]
    # Runs follow each other. In the heap they free their memory; buffers on the GPU stay.
    total["peak"] = max(total["peak"], more["peak"])
    total["arena"] = max(total["arena"], more["arena"]) if not on_device(provider) else total["arena"] + more["arena"]

"""What a session holds in the page: its plan for all shapes, and those for shapes that it saw.

On the GPU `peak` is the largest sum, over the commands, of the bytes of tensors that are there, an output in place of
an input counted once, and what recordings keep: the lower bound of the arena. `tests/models/test_arena.py` holds the
arena of static models within 10 % of it.
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
        runtime: Of the session.
        session: In the page.
        others: The page's sessions for shapes that were seen: they share the weights, and have arenas of their own.
    """
    together = _told(runtime, session)
    for other in others:
        try:
            told = _told(runtime, other)
        except NoSuchSession:  # it made room for another meanwhile
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
    # Runs follow each other. In the heap they give back what they needed; buffers stay.
    total["peak"] = max(total["peak"], more["peak"])
    total["arena"] = max(total["arena"], more["arena"]) if not on_device(provider) else total["arena"] + more["arena"]

"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)", or "" without a similar name."""
    near = difflib.get_close_matches(str(name), list(known), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""

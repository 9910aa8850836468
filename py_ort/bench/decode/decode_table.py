"""The rows of decoders as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from py_ort.bench.decode.measure import DecodeRow

_TEXTS = ("model", "engine", "provider", "loop")
_NUMBERS = ("create", "first prompt", "prompt", "step", "p90", "tokens/s", "ours / peer", "same tokens")


def decode_table(rows: Sequence[DecodeRow]) -> Table:
    """Return the rows as a rich table; times in milliseconds."""
    adapters = ", ".join(dict.fromkeys(row.adapter for row in rows if row.adapter)) or "none"
    lengths = ", ".join(dict.fromkeys(f"{row.words} tokens after a prompt of {row.past}" for row in rows))
    out = Table(title=f"ms; {lengths}; adapter: {adapters}")
    for name in (*_TEXTS, *_NUMBERS):
        out.add_column(name, justify="left" if name in _TEXTS else "right", overflow="fold")
    ours = None
    for row in rows:
        ours = row if row.engine == "py_ort" and (ours is None or row.model != ours.model) else ours
        times = (row.create_ms, row.first_prompt_ms, row.prompt_ms, row.step_ms, row.p90_ms, row.tokens_per_second)
        numbers = ["" if n is None else _number(n, 0 if i < 3 else 1) for i, n in enumerate(times)]
        same = "" if row.same_words is None else f"{row.same_words} of {row.words + 1}"
        place = (row.model, row.engine, row.provider, "failed" if row.error else row.loop)
        out.add_row(*place, *numbers, _ratio(row, ours), same)
    return out


def _number(ms: float, digits: int) -> str:
    """Return a time in milliseconds; a very short one has more digits."""
    return f"{ms:.{digits if ms >= 1 else 3}f}"


def _ratio(row: DecodeRow, ours: DecodeRow | None) -> str:
    if ours is None or row.engine == ours.engine or not row.tokens_per_second or not ours.tokens_per_second:
        return ""
    return f"{ours.tokens_per_second / row.tokens_per_second:.2f}"

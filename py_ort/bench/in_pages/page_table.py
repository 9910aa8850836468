"""The rows of pages as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from py_ort.bench.in_pages.measure import OURS, PageRow
from py_ort.providers import canonical_provider

_TEXTS = ("model", "engine", "provider", "visit")
_NUMBERS = ("module", "session", "first result", "ours / peer", "steady", "MB")


def page_table(rows: Sequence[PageRow]) -> Table:
    """Return the rows as a rich table; times in milliseconds since navigation."""
    out = Table(title="ms from navigation; bytes as the server sent them")
    for name in (*_TEXTS, *_NUMBERS):
        out.add_column(name, justify="left" if name in _TEXTS else "right", overflow="fold")
    for row in rows:
        times = ("" if ms is None else f"{ms:.0f}" for ms in (row.module_ms, row.created_ms, row.first_ms))
        steady = "" if row.steady_ms is None else f"{row.steady_ms:.1f}"
        size = "" if row.error else f"{row.bytes / 1e6:.2f}"
        place = (row.model, row.engine, row.provider, row.visit)
        out.add_row(*place, *times, "failed" if row.error else _share(row, rows), steady, size)
    return out


def _share(row: PageRow, rows: Sequence[PageRow]) -> str:
    """Our time to the first result by this peer's."""
    if row.engine == OURS or not row.first_ms:
        return ""
    kind = canonical_provider(row.provider)
    key = (row.model, row.visit, row.threads)
    ours = next(r for r in rows if r.engine == OURS and r.provider == kind and (r.model, r.visit, r.threads) == key)
    return f"{ours.first_ms / row.first_ms:.2f}" if ours.first_ms else ""

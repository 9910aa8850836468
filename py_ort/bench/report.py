"""A benchmark's rows for people: a table for the terminal, a page for the browser."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from py_ort.bench.measure import Row

if TYPE_CHECKING:
    from py_ort.bench.bridge import BridgeRow

_COLUMNS = (
    "model",
    "engine",
    "provider",
    "create",
    "first run",
    "median",
    "p90",
    "peer / ours",
    "max rel. error",
    "nodes",
)


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the table's rows as text, in `_COLUMNS`' order. A peer's row stands somewhere below ours, as measured."""
    found, ours = [], None
    for row in rows:
        ours = row if row.engine == "py_ort" else ours
        found.append(
            (
                row.model,
                row.engine,
                row.provider + (f" ×{row.threads}" if row.threads > 1 else ""),
                *(
                    "" if ms is None else f"{ms:.1f}"
                    for ms in (row.create_ms, row.first_run_ms, row.median_ms, row.p90_ms)
                ),
                _ratio(row, ours),
                _error(row),
                row.error or row.nodes,
            )
        )
    return found


def _ratio(row: Row, ours: Row | None) -> str:
    if ours is None or ours is row or row.median_ms is None or not ours.median_ms:
        return ""
    return f"{row.median_ms / ours.median_ms:.2f}"


def _error(row: Row) -> str:
    if row.max_rel_err is None:
        return ""
    return f"{row.max_rel_err:.1e}" + (" to the peer" if row.reference != "onnxruntime" else "")


def table(rows: Sequence[Row]) -> Table:
    """Return the rows as a rich table; times in milliseconds."""
    out = Table(title=f"ms; adapter: {next((row.adapter for row in rows if row.adapter), 'none')}")
    for name in _COLUMNS:
        left = name in ("model", "engine", "provider", "nodes")
        out.add_column(name, justify="left" if left else "right", overflow="fold")
    for row in cells(rows):
        out.add_row(*row)
    return out


def bridge_table(rows: Sequence[BridgeRow]) -> Table:
    """Return the comparisons of the bridge with bare transfers as a rich table."""
    out = Table(title="the bridge: medians in ms, both measured in turn")
    for name in ("what", "provider", "py_ort", "bare", "bare is", "py_ort / bare"):
        out.add_column(name, justify="left" if name in ("what", "provider", "bare is") else "right")
    for row in rows:
        out.add_row(row.what, row.provider, f"{row.ours_ms:.2f}", f"{row.bare_ms:.2f}", row.bare, f"{row.ratio:.2f}")
    return out


def page(rows: Sequence[Row]) -> str:
    """Return the rows as an HTML page."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in _COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in cells(rows))
    adapter = html.escape(next((row.adapter for row in rows if row.adapter), "none"))
    return (
        "<!doctype html><meta charset=utf-8><title>py-ort bench</title>"
        "<style>body{font:14px system-ui;margin:2em}td,th{padding:.2em .8em;text-align:right}"
        "td:nth-child(-n+3),th:nth-child(-n+3),td:last-child,th:last-child{text-align:left}"
        "tr:nth-child(even){background:#f2f2f2}</style>"
        f"<h1>py-ort bench</h1><p>Milliseconds; adapter: {adapter}</p><table><tr>{head}</tr>\n{body}</table>\n"
    )

"""A benchmark's rows for people: a table for the terminal, a page for the browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from py_ort.bench.measure import Row
from py_ort.exceptions import InvalidArgument

if TYPE_CHECKING:
    from py_ort.bench.bridge import BridgeRow

_COLUMNS = (
    "model",
    "engine",
    "provider",
    "browser",
    "create",
    "first run",
    "median",
    "p90",
    "floor",
    "peer / ours",
    "before",
    "float",
    "max rel. error",
    "nodes",
)
#: Columns that are left out where all rows are empty.
_AT_NEED = ("floor", "peer / ours", "before", "float")
_TEXTS = ("model", "engine", "provider", "browser", "nodes")


def cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the table's rows as text, in `_COLUMNS`' order. A peer's row stands somewhere below ours, as measured."""
    found, ours = [], None
    for row in rows:
        ours = row if row.engine == "py_ort" else ours
        found.append(
            (
                _model(row),
                row.engine,
                _place(row),
                row.browser,
                *(
                    "" if ms is None else f"{ms:.1f}"
                    for ms in (row.create_ms, row.first_run_ms, row.median_ms, row.p90_ms)
                ),
                _floor(row),
                _ratio(row, ours),
                _change(row, row.before_ms),
                _change(row, row.float_ms),
                _error(row),
                row.error or row.nodes,
            )
        )
    return found


def _place(row: Row) -> str:
    return row.provider + (f" ×{row.threads}" if row.threads > 1 else "")


def _ratio(row: Row, ours: Row | None) -> str:
    if ours is None or ours is row or row.median_ms is None or not ours.median_ms:
        return ""
    return f"{row.median_ms / ours.median_ms:.2f}"


def _floor(row: Row) -> str:
    """What the device could do at best, and how many times that was taken."""
    if row.floor is None or row.median_ms is None:
        return ""
    best = row.floor["ms"]
    return f"{best:.2g}" + (f" ×{row.median_ms / best:.1f}" if best else "")


def _model(row: Row) -> str:
    return row.model + (f" ({row.quantized})" if row.quantized else "")


def _change(row: Row, other_ms: float | None) -> str:
    """Another median, and how much longer than that this one is."""
    if other_ms is None:
        return ""
    change = f" ({row.median_ms / other_ms - 1:+.0%})" if row.median_ms is not None and other_ms else ""
    return f"{other_ms:.1f}{change}"


def _error(row: Row) -> str:
    if row.max_rel_err is None:
        return ""
    return f"{row.max_rel_err:.1e}" + (" to the peer" if row.reference != "onnxruntime" else "")


def table(rows: Sequence[Row]) -> Table:
    """Return the rows as a rich table; times in milliseconds."""
    adapters = ", ".join(dict.fromkeys(row.adapter for row in rows if row.adapter)) or "none"
    browsers = list(dict.fromkeys(row.browser for row in rows))
    alone = browsers[0] if len(browsers) == 1 else ""
    out = Table(title="; ".join(filter(None, ("ms", alone, f"adapter: {adapters}"))))
    texts = cells(rows)
    hidden = {name for i, name in enumerate(_COLUMNS) if name in _AT_NEED and not any(row[i] for row in texts)}
    if alone:
        hidden.add("browser")
    shown = [i for i, name in enumerate(_COLUMNS) if name not in hidden]
    for i in shown:
        name = _COLUMNS[i]
        out.add_column(name, justify="left" if name in _TEXTS else "right", overflow="fold")
    for row in texts:
        out.add_row(*(row[i] for i in shown))
    return out


def earlier_medians(file: Path) -> dict[tuple[object, ...], float | None]:
    """Return the medians of a file of `py-ort bench --json`, by `Row.key`.

    Raises:
        InvalidArgument: It is something else.
    """
    known = {field.name for field in fields(Row)}
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(rows, list):
            raise TypeError("no list")
        earlier = [Row(**{name: value for name, value in row.items() if name in known}) for row in rows]
    except (OSError, ValueError, TypeError, AttributeError) as e:
        raise InvalidArgument(f"{file}: no rows of `py-ort bench --json`: {type(e).__name__}: {e}") from e
    return {row.key: row.median_ms for row in earlier}


def bridge_table(rows: Sequence[BridgeRow]) -> Table:
    """Return the comparisons of the bridge with bare transfers as a rich table."""
    out = Table(title="the bridge: medians in ms, both measured in turn")
    for name in ("what", "provider", "py_ort", "bare", "bare is", "py_ort / bare"):
        out.add_column(name, justify="left" if name in ("what", "provider", "bare is") else "right")
    for row in rows:
        out.add_row(row.what, row.provider, f"{row.ours_ms:.2f}", f"{row.bare_ms:.2f}", row.bare, f"{row.ratio:.2f}")
    return out


@dataclass(frozen=True)
class _Bar:
    """One time in a chart: how long, and from where to where it varied; all in milliseconds."""

    label: str
    engine: str
    ms: float | None
    low: float | None = None
    high: float | None = None
    error: str = ""


def page(rows: Sequence[Row]) -> str:
    """Return the rows as an HTML page: for each model charts of creation, first run and steady runs, and the table."""
    from py_ort.pages.template import render

    models: dict[str, dict[str, list[_Bar]]] = {}
    several = len({row.browser for row in rows}) > 1
    for row in rows:
        label = " ".join(filter(None, (row.engine, _place(row), row.browser if several else "")))
        charts = models.setdefault(_model(row), {"creating the session": [], "first run": [], "steady runs": []})
        steady = _Bar(label, row.engine, row.median_ms, row.min_ms, row.p90_ms, row.error)
        times = (_Bar(label, row.engine, ms, error=row.error) for ms in (row.create_ms, row.first_run_ms))
        for chart, bar in zip(charts.values(), (*times, steady), strict=True):
            chart.append(bar)
    runs = sorted({row.runs for row in rows if row.median_ms is not None})
    return render(
        "bench",
        "py-ort bench",
        models=models,
        columns=_COLUMNS,
        texts=_TEXTS,
        table=[(row, cells) for row, cells in zip(rows, cells(rows), strict=True)],
        facts={
            "browsers": ", ".join(dict.fromkeys(row.browser_version for row in rows if row.browser_version)) or "none",
            "adapters": ", ".join(dict.fromkeys(row.adapter for row in rows if row.adapter)) or "none",
            "steady runs": ", ".join(map(str, runs)) or "none",
        },
    )

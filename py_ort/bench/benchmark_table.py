"""A benchmark's rows for people: a table for the terminal, a page for the browser."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
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
#: Columns that are dropped where all rows are empty.
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
    """Return the shortest time that the device allows, and the ratio of the median to it."""
    if row.floor is None or row.median_ms is None:
        return ""
    best = row.floor["ms"]
    return f"{best:.2g}" + (f" ×{row.median_ms / best:.1f}" if best else "")


def _model(row: Row) -> str:
    return row.model + (f" ({row.quantized})" if row.quantized else "")


def _change(row: Row, other_ms: float | None) -> str:
    """Return another median, and by how much this one is longer."""
    if other_ms is None:
        return ""
    change = f" ({row.median_ms / other_ms - 1:+.0%})" if row.median_ms is not None and other_ms else ""
    return f"{other_ms:.1f}{change}"


def _error(row: Row) -> str:
    if row.max_rel_err is None:
        return ""
    return f"{row.max_rel_err:.1e}" + (" to the peer" if row.reference != "onnxruntime" else "")


def _inputs(row: Row) -> str:
    return ", ".join(f"{name} {'×'.join(map(str, shape)) or 'scalar'}" for name, shape in row.inputs.items())


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
    known = {each.name for each in fields(Row)}
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
    """One time in a chart, its spread and its ratio to ours; all in milliseconds."""

    label: str
    engine: str
    ms: float | None
    low: float | None = None
    high: float | None = None
    error: str = ""
    ratio: str = ""


#: Ratio of the longest time to the shortest from which a chart's axis is logarithmic: shorter bars would vanish.
_WIDE = 25


@dataclass(frozen=True)
class _Chart:
    """Bars with one axis, which is logarithmic where the times are very unlike."""

    heading: str
    bars: list[_Bar] = field(default_factory=list)

    @property
    def _ends(self) -> tuple[float, float]:
        """The least and the largest time."""
        times = [ms for bar in self.bars for ms in (bar.low, bar.ms, bar.high) if ms]
        return min(times, default=1.0), max(times, default=1.0)

    @property
    def axis(self) -> str:
        """The axis in words."""
        least, most = self._ends
        if most <= least * _WIDE:
            return f"full width: {most:.1f} ms"
        return f"logarithmic, from {least / 2:.2g} to {most:.1f} ms"

    def percent(self, ms: float) -> str:
        """Return where a time is on the axis."""
        least, most = self._ends
        if most <= least * _WIDE:
            return f"{100 * ms / most:.2f}"
        return f"{100 * max(math.log(2 * ms / least), 0) / math.log(2 * most / least) if ms else 0:.2f}"


def _charts(rows: Sequence[Row]) -> dict[str, list[_Chart]]:
    """Return the charts of each model."""
    charts: dict[str, list[_Chart]] = {}
    several = len({row.browser for row in rows}) > 1
    ours = None
    for row in rows:
        ours = row if row.engine == "py_ort" else ours
        ratio = _ratio(row, ours)
        label = " ".join(filter(None, (row.engine, _place(row), row.browser if several else "")))
        steady = _Bar(label, row.engine, row.median_ms, row.min_ms, row.p90_ms, row.error, ratio and f"{ratio}x ours")
        first, second = (_Bar(label, row.engine, ms, error=row.error) for ms in (row.create_ms, row.first_run_ms))
        names = ("creating the session", "first run", "steady runs")
        for chart, bar in zip(
            charts.setdefault(_model(row), [_Chart(name) for name in names]), (first, second, steady), strict=True
        ):
            chart.bars.append(bar)
    return charts


def page(rows: Sequence[Row]) -> str:
    """Return the rows as an HTML page: for each model charts of creation, first run and steady runs, and the table."""
    from py_ort.pages.template import render

    runs = sorted({row.runs for row in rows if row.median_ms is not None})
    texts = cells(rows)
    shown = [i for i, name in enumerate(_COLUMNS) if name not in _AT_NEED or any(row[i] for row in texts)]
    return render(
        "bench",
        "py-ort bench",
        models=_charts(rows),
        inputs={_model(row): _inputs(row) for row in rows},
        columns=[_COLUMNS[i] for i in shown],
        texts=_TEXTS,
        table=[(row, [found[i] for i in shown]) for row, found in zip(rows, texts, strict=True)],
        facts={
            "browsers": ", ".join(dict.fromkeys(row.browser_version for row in rows if row.browser_version)) or "none",
            "adapters": ", ".join(dict.fromkeys(row.adapter for row in rows if row.adapter)) or "none",
            "steady runs": ", ".join(map(str, runs)) or "none",
            "threads": ", ".join(map(str, sorted({row.threads for row in rows}))),
        },
    )

"""A check's results, for people: a table for the terminal, a page for the browser; and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from py_ort.compiler.load.model_files import replacing
from py_ort.exporting.checking.check import FAILED, CheckReport, CheckRow

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("browser", "provider", "outcome", "difference", "load", "first run", "second run", "what")
_TEXTS = ("browser", "provider", "outcome", "what")


def table(report: CheckReport) -> Table:
    """Return the rows as a rich table; times in milliseconds."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, header_style="bold")
    for name in _COLUMNS:
        made.add_column(name, justify="left" if name in _TEXTS else "right", overflow="fold")
    for row in report.rows:
        made.add_row(*map(Text, _cells(row)))
    return made


def words(report: CheckReport) -> Iterator[str]:
    """Yield remarks on the report."""
    why = f" ({report.without})" if report.without else ""
    yield f"compared with {report.reference or 'nothing'}{why}; times in ms"
    if any(row.outcome == FAILED for row in report.rows):
        yield f"fed were {fed(report)}; others are given with --input NAME=FILE, --shape or --dim"
    for name in report.unchecked:
        yield f"no browser here has {name}: that plan was not checked (--provider leaves it out)"


def write_report(report: CheckReport, file: Path) -> list[Path]:
    """Write NAME.check.json and NAME.check.html next to an exported file NAME.pyort; return them."""
    from py_ort.pages.template import render

    page = render(
        "check",
        f"{file.stem}: py-ort export --check",
        facts={
            "result": "the same everywhere" if report.ok else "not the same everywhere",
            "file": report.file,
            "fed": fed(report),
        },
        notes=list(words(report)),
        columns=_COLUMNS,
        texts=_TEXTS,
        table=[(row.outcome in ("differs", "failed"), _cells(row)) for row in report.rows],
    )
    written = {".json": json.dumps(report.as_dict(), indent=1) + "\n", ".html": page}
    files = []
    for suffix, text in written.items():
        files.append(file.with_name(f"{file.stem}.check{suffix}"))
        with replacing(files[-1], 0o666) as out:
            out.write(text.encode())
    return files


def fed(report: CheckReport) -> str:
    """Return a description of the feeds."""
    return "; ".join(f"{name}: {text}" for name, text in report.feeds.items()) or "nothing"


def _cells(row: CheckRow) -> tuple[str, ...]:
    shapes = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in row.shapes.items())
    times = ("" if ms is None else f"{ms:.1f}" for ms in (row.load_ms, row.first_run_ms, row.second_run_ms))
    off = "" if row.difference is None else f"{row.difference:.1e}"
    return row.browser, f"{row.provider} for {shapes}" if shapes else row.provider, row.outcome, off, *times, row.detail

"""Results for people: a summary for the terminal, a page for the browser."""

from __future__ import annotations

import html
from collections.abc import Collection

from rich.table import Table

from py_ort.testing.results import FAILED, PASSED, SKIPPED, Results

#: Cases of one reason that are named.
_NAMED = 5


def summary(results: Results, known: Collection[str] = ()) -> Table | None:
    """Return the kinds of failure with their counts and some of their cases; None where there is none.

    Args:
        results: Of all cases.
        known: Failures that were expected; they are counted, not named.
    """
    groups: dict[str, list[str]] = {}
    for name, outcome in results.cases.items():
        if reason := outcome.kind():
            groups.setdefault(reason + (" (known)" if name in known else ""), []).append(name)
    table = Table("number", "reason", "cases", box=None, header_style="bold")
    table.columns[0].justify = "right"
    for reason, names in sorted(groups.items(), key=lambda item: -len(item[1])):
        named = sorted(names)[: 0 if reason.endswith("(known)") else _NAMED]
        more = [f"{len(names) - len(named)} more"] if named and len(names) > len(named) else []
        table.add_row(str(len(names)), reason, ", ".join([*named, *more]))
    return table if groups else None


def totals(results: Results) -> str:
    """Return how many cases have which status: "3 passed, 1 failed, 0 skipped"."""
    return ", ".join(f"{results.count(status)} {status}" for status in (PASSED, FAILED, SKIPPED))


def page(results: Results, title: str) -> str:
    """Return the results as an HTML page, failures first."""
    order = {FAILED: 0, SKIPPED: 1, PASSED: 2}
    nodes = {name: ", ".join(f"{n} {p}" for p, n in o.providers.items()) for name, o in results.cases.items()}
    rows = "".join(
        f"<tr class={outcome.status}><td>{html.escape(name)}<td>{outcome.status}<td>{outcome.seconds:.3f}"
        f"<td>{nodes[name]}<td>{html.escape(outcome.reason)}\n"
        for name, outcome in sorted(results.cases.items(), key=lambda item: (order[item[1].status], item[0]))
    )
    where = ", ".join(filter(None, (results.browser, results.adapter))) or "nothing was run"
    return (
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title>"
        "<style>body{font:14px system-ui;margin:2em}td,th{padding:.2em .8em;text-align:left}"
        ".failed{background:#fdd}.skipped{background:#eee}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(where)}</p><p>{totals(results)}</p>"
        f"<table><tr><th>case<th>status<th>seconds<th>nodes<th>reason\n{rows}</table>\n"
    )

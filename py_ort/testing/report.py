"""Results for people: a summary for the terminal, a page for the browser."""

from __future__ import annotations

import html

from rich.table import Table

from py_ort.testing.results import FAILED, PASSED, SKIPPED, Results


def summary(results: Results) -> Table:
    """Return the kinds of failure with their counts, and the totals as the title."""
    counts = ", ".join(f"{results.count(status)} {status}" for status in (PASSED, FAILED, SKIPPED))
    table = Table("cases", "reason", title=counts, title_style="bold", min_width=len(counts))
    for reason, count in results.reasons().most_common(25):
        table.add_row(str(count), reason)
    return table


def page(results: Results, title: str) -> str:
    """Return the results as an HTML page, failures first."""
    order = {FAILED: 0, SKIPPED: 1, PASSED: 2}
    nodes = {name: ", ".join(f"{n} {p}" for p, n in o.providers.items()) for name, o in results.cases.items()}
    rows = "".join(
        f"<tr class={outcome.status}><td>{html.escape(name)}<td>{outcome.status}<td>{outcome.seconds:.3f}"
        f"<td>{nodes[name]}<td>{html.escape(outcome.reason)}\n"
        for name, outcome in sorted(results.cases.items(), key=lambda item: (order[item[1].status], item[0]))
    )
    counts = ", ".join(f"{results.count(status)} {status}" for status in (PASSED, FAILED, SKIPPED))
    where = ", ".join(filter(None, (results.browser, results.adapter))) or "nothing was run"
    return (
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title>"
        "<style>body{font:14px system-ui;margin:2em}td,th{padding:.2em .8em;text-align:left}"
        ".failed{background:#fdd}.skipped{background:#eee}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(where)}</p><p>{counts}</p>"
        f"<table><tr><th>case<th>status<th>seconds<th>nodes<th>reason\n{rows}</table>\n"
    )

"""A trace for people: a table for the terminal, and a page with a flame chart that needs nothing but a browser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py_ort.profiling.trace import KernelRow, Trace

if TYPE_CHECKING:
    from rich.table import Table

_TEMPLATE = "report.html.j2"
_ROUNDING_US = 0.002


def kernel_table(rows: Sequence[KernelRow], runs: int, top: int = 0, what: str = "kernel") -> Table:
    """Return kernels or nodes as a rich table.

    Args:
        rows: As `Trace.kernels` or `Trace.nodes` gives them.
        runs: How many runs they are of.
        top: Show so many of them; 0: all.
        what: The first column's heading.
    """
    from rich.table import Table

    table = Table(what, "operator", "provider", box=None, header_style="bold", pad_edge=False)
    for heading in ("nodes", "calls", "total ms", "ms a run", "share"):
        table.add_column(heading, justify="right")
    shown = rows[: top or None]
    for row in shown:
        provider = row.provider.removesuffix("ExecutionProvider")
        table.add_row(row.kernel, row.op_type, provider, str(len(row.nodes)), *_numbers([row], runs))
    if rest := rows[len(shown) :]:
        table.add_row(f"… {len(rest)} others", "", "", "", *_numbers(rest, runs), style="dim")
    return table


def _numbers(rows: Sequence[KernelRow], runs: int) -> tuple[str, ...]:
    total = sum(row.total_ms for row in rows)
    share = sum(row.share for row in rows)
    return str(sum(row.calls for row in rows)), f"{total:.3f}", f"{total / max(runs, 1):.3f}", f"{share:.1%}"


def page(trace: Trace, title: str, facts: Mapping[str, Any], runs: int) -> str:
    """Return an HTML page: facts, a flame chart of the whole trace, kernels and phases as tables.

    Args:
        trace: The trace.
        title: Of the page.
        facts: Lines at its top, e.g. the browser and the adapter.
        runs: How many runs the trace is of.
    """
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(_TEMPLATE).render(
        title=title,
        facts=facts,
        notes=trace.notes(),
        tables={"Kernels": trace.kernels(), "Nodes": trace.nodes()},
        shaders=trace.shaders(),
        runs=max(runs, 1),
        phases=trace.phases(),
        data=_script(_chart(trace)),
    )


def _script(data: Any) -> Any:
    """JSON that may stand inside a script element."""
    from markupsafe import Markup

    text = json.dumps(data, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _chart(trace: Trace) -> dict[str, Any]:
    """The flame chart's rows: for each thread its spans, each with its depth, by which it lies inside others."""
    names, order = {}, {}
    for event in trace.events:
        if event.get("ph") == "M" and event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
        elif event.get("ph") == "M" and event["name"] == "thread_sort_index":
            order[event["tid"]] = event["args"]["sort_index"]
    lanes: dict[Any, list[list[Any]]] = {}
    open_ends: dict[Any, list[float]] = {}
    for event in sorted(trace.spans(), key=lambda event: (event["ts"], -event["dur"])):
        tid, start, end = event["tid"], event["ts"], event["ts"] + event["dur"]
        ends = open_ends.setdefault(tid, [])
        while ends and ends[-1] <= start + _ROUNDING_US:
            ends.pop()
        lanes.setdefault(tid, []).append([start, event["dur"], len(ends), event["name"], event["cat"], event["args"]])
        ends.append(end)
    tids = sorted(lanes, key=lambda tid: order.get(tid, 0))
    return {"lanes": [{"name": names.get(tid, str(tid)), "spans": lanes[tid]} for tid in tids]}

"""A trace for people: a table for the terminal, and a page with a flame chart that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from py_ort.profiling.trace import SUFFIX, GpuTimes, KernelRow, Trace

if TYPE_CHECKING:
    from rich.table import Table

_ROUNDING_US = 0.002


def kernel_table(rows: Sequence[KernelRow], runs: int, top: int = 0, what: str = "kernel") -> Table:
    """Return kernels or nodes as a rich table.

    Args:
        rows: As `Trace.kernels` or `Trace.nodes` gives them.
        runs: Number of runs that the rows count.
        top: Show so many of them; 0: all.
        what: The first column's heading.
    """
    from rich.table import Table

    table = Table(what, "operator", "provider", box=None, header_style="bold", pad_edge=False)
    for heading in ("nodes", "calls", "total ms", "ms a run", "share"):
        table.add_column(heading, justify="right")
    shown = rows[: top or None]
    for row in shown:
        table.add_row(row.kernel, row.op_type, row.place, str(len(row.nodes)), *_numbers([row], runs))
    if rest := rows[len(shown) :]:
        table.add_row(f"… {len(rest)} others", "", "", "", *_numbers(rest, runs), style="dim")
    return table


def _numbers(rows: Sequence[KernelRow], runs: int) -> tuple[str, ...]:
    total = sum(row.total_ms for row in rows)
    share = sum(row.share for row in rows)
    return str(sum(row.calls for row in rows)), f"{total:.3f}", f"{total / max(runs, 1):.3f}", f"{share:.1%}"


def gpu_words(times: GpuTimes, runs: int) -> str:
    """Return the times of the GPU's kernels in words.

    Args:
        times: The times.
        runs: Number of runs of each kind.
    """
    words = [f"kernels {times.apart_ms:.2f} ms one by one", f"{times.together_ms:.2f} ms as they run together"]
    if f"{times.span_ms:.2f}" != f"{times.together_ms:.2f}":
        words.append(f"{times.span_ms:.2f} ms with the time between them")
    return f"{', '.join(words)} (median of {runs} runs)"


#: Headings of the facts of `py-ort profile`.
_FACTS = {
    "providers": "nodes",
    "browser_ms": "waiting for the browser",
    "create_ms": "creating the session",
    "first_run_ms": "first run",
    "mean_ms": "mean of the runs that count",
    "median_ms": "their median",
}
#: onnxruntime's names of spans, in words.
_SPANS = {
    "session_initialization": "creating the session",
    "model_loading_uri": "reading the model",
    "model_run": "a run, as Python sees it",
    "SequentialExecutor::Execute": "a run, in the page",
}
_ARGUMENTS = {
    "op_name": "operator",
    "node_index": "number of the node",
    "workgroups": "workgroups",
    "node": "node",
    "gpu_ms": "ms of the GPU's passes",
    "gpu_span_ms": "ms from the first pass to the last",
    "gpu_passes": "passes of the GPU",
}
_LEGEND = {
    "session": "session, bridge and page",
    "node": "node of the model",
    "kernel": "kernel on the GPU",
    "resolve": "node of the GPU, on the CPU: shapes, dispatches",
    "wait": "waiting",
    "control": "control flow, with what runs inside",
}


def page(trace: Trace, title: str, facts: Mapping[str, Any], runs: int, warm_up: int = 0) -> str:
    """Return an HTML page: facts, a flame chart of the whole trace, kernels and phases as tables.

    Args:
        trace: The trace.
        title: The page's title.
        facts: Lines at its top, e.g. the browser and the adapter; numbers whose name ends in `_ms` are milliseconds.
        runs: How many runs count; the tables are of these.
        warm_up: Number of runs before those.
    """
    from py_ort.pages.template import render

    since, runs = trace.since(warm_up), max(runs, 1)
    counted, gpu = since.apart(), since.gpu_times()
    kernels = counted.kernels()
    counts = f"{runs} that count" + (f", after {warm_up} that warmed up" if warm_up else "")
    shown = {_FACTS.get(name, name.replace("_", " ")): _fact(name, value) for name, value in facts.items()}
    shown |= {"kernels of a run": f"{sum(row.total_ms for row in kernels) / runs:.2f} ms (mean)"}
    shown |= {"GPU": gpu_words(gpu, runs)} if gpu else {}
    shown |= {"runs": counts}
    return render(
        "profile",
        title,
        _chart(trace, warm_up),
        facts=shown,
        notes=trace.notes(),
        legend=_LEGEND,
        tables={"Kernels": kernels, "Nodes": counted.nodes()},
        shaders=trace.shaders(),
        runs=runs,
        phases={
            "Phases of the runs that count": _phases(counted),
            "Phases before them": _phases(trace.until(warm_up)),
        },
    )


def _fact(name: str, value: Any) -> str:
    return f"{value:.2f} ms" if name.endswith("_ms") and isinstance(value, (int, float)) else str(value)


def _phases(trace: Trace) -> list[tuple[str, int, float]]:
    return [(_SPANS.get(name, name), count, ms) for name, count, ms in trace.phases()]


def _chart(trace: Trace, warm_up: int) -> dict[str, Any]:
    """Return the flame chart's lanes, one for each thread, with the begin, depth and arguments of each span.

    Times are in microseconds since the first span. `runs` has the begins and ends of runs that count, for buttons.
    """
    names, order = {}, {}
    zero = min((event["ts"] for event in trace.spans()), default=0)
    for event in trace.events:
        if event.get("ph") == "M" and event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
        elif event.get("ph") == "M" and event["name"] == "thread_sort_index":
            order[event["tid"]] = event["args"]["sort_index"]
    lanes: dict[Any, list[list[Any]]] = {}
    open_ends: dict[Any, list[float]] = {}
    for event in sorted(trace.spans(), key=lambda event: (event["ts"], -event["dur"])):
        tid, start, end = event["tid"], event["ts"] - zero, event["ts"] - zero + event["dur"]
        ends = open_ends.setdefault(tid, [])
        while ends and ends[-1] <= start + _ROUNDING_US:
            ends.pop()
        name = _SPANS.get(event["name"], event["name"]).removesuffix(SUFFIX)
        args = {_ARGUMENTS.get(key, key): str(value) for key, value in event["args"].items() if key != "shaders"}
        lanes.setdefault(tid, []).append([start, event["dur"], len(ends), name, event["cat"].lower(), args])
        ends.append(end)
    tids = sorted(lanes, key=lambda tid: order.get(tid, 0))
    runs = [e for e in trace.since(warm_up).apart().spans("Session") if e["name"] == "model_run"]
    return {
        "lanes": [{"name": names.get(tid, str(tid)), "spans": lanes[tid]} for tid in tids],
        "runs": [[run["ts"] - zero, run["ts"] - zero + run["dur"]] for run in runs],
    }

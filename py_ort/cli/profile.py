"""`py-ort profile`: where a model's time goes."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.common import browser_options, err, kernels_option, out, progress, provider_option, shape_option

if TYPE_CHECKING:
    from py_ort import BrowserOptions
    from py_ort.profiling import Trace


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@provider_option
@click.option("--runs", default=10, show_default=True, help="Runs that count; two more go before them.")
@shape_option
@kernels_option
@click.option(
    "--by", type=click.Choice(["kernel", "node"]), default="kernel", show_default=True, help="Rows of the table."
)
@click.option("--top", default=20, show_default=True, help="Kernels to print; 0: all.")
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), metavar="FILE", help="Keep the Chrome trace.")
@click.option(
    "--html", "html_file", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with a flame chart."
)
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the kernels as JSON; - for stdout, and nothing else there."
)
@browser_options
def profile(
    model: Path,
    providers: tuple[str, ...],
    runs: int,
    shapes: dict[str, list[int]],
    by: str,
    top: int,
    trace_file: Path | None,
    html_file: Path | None,
    json_file: str | None,
    browser: BrowserOptions,
) -> None:
    """Run MODEL on random inputs and show which kernels take the time.

    The chart has all runs and the session's making; the tables leave the first two runs out.
    """
    from py_ort.profiling.report import kernel_table, page

    with progress() as report:
        trace, facts = _measure(model, providers, max(runs, 1), shapes, browser, trace_file, report)
    counted, shaders = trace.since(_WARM_UP), trace.shaders()
    rows = counted.kernels()
    left_out = facts.pop("left_out")  # "providers" tells it to people
    result = {
        **facts,
        "left_out": left_out,
        "runs": runs,
        "kernels": [row.as_dict() for row in rows],
        "nodes": [row.as_dict() for row in counted.nodes()],
        "shaders": [{"shader": label, "ready_after_ms": ms} for label, ms in shaders],
        "notes": trace.notes(),
    }
    if json_file == "-":
        sys.stdout.write(json.dumps(result, indent=1) + "\n")
    else:
        if json_file:
            Path(json_file).write_text(json.dumps(result, indent=1) + "\n")
        for name in ("model", "providers", "browser", "adapter"):
            out.print(f"{name:<9} {facts[name]}", markup=False, soft_wrap=True)
        out.print(kernel_table(rows if by == "kernel" else counted.nodes(), runs, top, by))
        kernels_ms = sum(row.total_ms for row in rows) / max(runs, 1)
        out.print(f"median of {runs} runs: {facts['median_ms']:.2f} ms; kernels of a run: {kernels_ms:.2f} ms")
        if shaders:
            waited = sum(ms for name, _, ms in trace.phases() if name.startswith("compile shaders"))
            out.print(f"{len(shaders)} shaders were compiled, which took {waited:,.0f} ms")
    for note in trace.notes():
        err.print(f"note: {note}", markup=False, soft_wrap=True)
    if html_file:
        html_file.write_text(page(trace, f"py-ort profile {model.name}", facts, runs, _WARM_UP))


#: Runs that compile, and that are not counted.
_WARM_UP = 2


def _measure(
    model: Path,
    providers: tuple[str, ...],
    runs: int,
    shapes: dict[str, list[int]],
    browser: BrowserOptions,
    trace_file: Path | None,
    report: Any,
) -> tuple[Trace, dict[str, Any]]:
    import statistics

    from py_ort import InferenceSession, SessionOptions
    from py_ort.profiling import Trace
    from py_ort.testing.random_feeds import random_feeds

    with tempfile.TemporaryDirectory() as folder:
        options = SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, str(Path(folder, "profile"))
        with InferenceSession(model, options, list(providers) or None, browser=browser, progress=report) as session:
            feeds = random_feeds(session.get_inputs(), shapes)
            times = []
            for number in range(_WARM_UP + runs):
                report("running", number, _WARM_UP + runs)
                session.run(None, feeds)
                times.append(session.stats()["last_run"]["total_ms"])
            facts = {
                "model": str(model),
                "inputs": ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in feeds.items()),
                "providers": "; ".join(session.placement().summary()),
                "left_out": dict(session.placement().left_out),
                "browser": session.browser,
                "adapter": session.adapter or "none",
                "create_ms": round(session.stats()["create_ms"], 3),
                "first_run_ms": round(times[0], 3),
                "median_ms": round(statistics.median(times[_WARM_UP:]), 3),
            }
            file = session.end_profiling()
        if trace_file:
            shutil.copyfile(file, trace_file)
        return Trace.load(file), facts

"""`py-ort profile`: where a model's time goes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.common import (
    OutputFile,
    browser_options,
    err,
    json_option,
    kernels_option,
    out,
    progress,
    provider_option,
    runs_option,
    threads_option,
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options, told_how_to_give

if TYPE_CHECKING:
    from py_ort import BrowserOptions
    from py_ort.profiling import Trace
    from py_ort.wire.json_fields import Dispatch


@click.command(short_help="Show which kernels take the time.")
@click.argument("model", type=click.Path(path_type=Path))
@provider_option
@runs_option(10, "Runs to measure, after two to warm up.")
@input_options
@kernels_option
@threads_option(0, "Threads of wasm; 0: its own choice.")
@click.option(
    "--by",
    type=click.Choice(["kernel", "node"]),
    default="kernel",
    show_default=True,
    help="One row for each kernel, or for each node.",
)
@click.option(
    "--top", type=click.IntRange(min=0), default=20, show_default=True, help="Number of rows to print; 0: all."
)
@click.option(
    "--trace",
    "trace_file",
    type=OutputFile(),
    metavar="FILE",
    help="Also write the trace, for chrome://tracing or Perfetto.",
)
@click.option("--html", "html_file", type=OutputFile(), metavar="FILE", help="Write an HTML page with a flame chart.")
@json_option("the kernels")
@browser_options
def profile(
    model: Path,
    providers: tuple[str, ...],
    runs: int,
    inputs: Inputs,
    threads: int,
    by: str,
    top: int,
    trace_file: Path | None,
    html_file: Path | None,
    json_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Run MODEL on random inputs and show which kernels take the time.

    On a GPU with timestamps, a second run beside each measured one times all kernels together, as timestamps around
    each kernel slow it down. The chart has all runs and the session's creation; the tables have the measured runs.
    """
    from py_ort.profiling.trace_report import gpu_words, kernel_table, page

    with progress() as report:
        trace, facts = _measure(model, providers, runs, inputs, threads, browser, trace_file, report)
    since, shaders = trace.since(_WARM_UP), trace.shaders()
    counted, gpu = since.apart(), since.gpu_times()
    rows = counted.kernels()
    left_out = facts.pop("left_out")  # people read it in "providers"
    result = {
        **facts,
        "left_out": left_out,
        "runs": runs,
        "gpu": gpu.as_dict() if gpu else None,
        "kernels": [row.as_dict() for row in rows],
        "nodes": [row.as_dict() for row in counted.nodes()],
        "shaders": [{"shader": label, "ready_after_ms": ms} for label, ms in shaders],
        "notes": trace.notes(),
    }
    if write_json(result, json_file):
        for name in ("model", "providers", "browser", "adapter"):
            out.print(f"{name:<9} {facts[name]}", markup=False, soft_wrap=True)
        out.print(kernel_table(rows if by == "kernel" else counted.nodes(), runs, top, by))
        kernels_ms = sum(row.total_ms for row in rows) / runs
        mean, median = facts["mean_ms"], facts["median_ms"]
        out.print(f"mean of {runs} runs: {mean:.2f} ms, of which kernels {kernels_ms:.2f} ms; median {median:.2f} ms")
        if gpu:
            out.print(f"gpu: {gpu_words(gpu, runs)}", soft_wrap=True)
        if shaders:
            waited = sum(ms for name, _, ms in trace.phases() if name.startswith("compile shaders"))
            out.print(f"{len(shaders)} shaders were compiled, which took {waited:,.0f} ms")
    for note in trace.notes():
        err.print(f"note: {note}", markup=False, soft_wrap=True)
    if html_file:
        html_file.write_text(page(trace, f"py-ort profile {model.name}", facts, runs, _WARM_UP), encoding="utf-8")


#: Runs that compile, and do not count.
_WARM_UP = 2


def _measure(
    model: Path,
    providers: tuple[str, ...],
    runs: int,
    inputs: Inputs,
    threads: int,
    browser: BrowserOptions,
    trace_file: Path | None,
    report: Any,
) -> tuple[Trace, dict[str, Any]]:
    import statistics

    from py_ort import InferenceSession, RunOptions, SessionOptions
    from py_ort.profiling import Trace

    described = inputs.describe(model)
    with tempfile.TemporaryDirectory() as folder:
        options = inputs.fix(SessionOptions())
        options.intra_op_num_threads = threads
        options.enable_profiling, options.profile_file_prefix = True, str(Path(folder, "profile"))
        with InferenceSession(model, options, list(providers) or None, browser=browser, progress=report) as session:
            feeds = inputs.feeds(session.get_inputs(), described)
            times = []
            kernels: Sequence[Dispatch] = ()
            together = RunOptions()
            together._profile = "passes"
            with told_how_to_give(session.get_inputs(), feeds, inputs.files):
                for number in range(_WARM_UP + runs):
                    report("running", number, _WARM_UP + runs)
                    # In turn, since a GPU that has little to do changes its clock.
                    if number >= _WARM_UP and any("ms" in row for row in kernels):
                        session.run(None, feeds, together)
                    session.run(None, feeds)
                    last_run = session.stats()["last_run"]
                    kernels = last_run["profile"]
                    times.append(last_run["total_ms"])
            facts = {
                "model": str(model),
                "inputs": ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in feeds.items()),
                "providers": "; ".join(session.placement().summary()),
                "left_out": dict(session.placement().left_out),
                "browser": session.browser,
                "adapter": session.adapter or "none",
                **{name: round(session.stats()[name], 3) for name in ("browser_ms", "create_ms")},
                "first_run_ms": round(times[0], 3),
                "mean_ms": round(statistics.mean(times[_WARM_UP:]), 3),
                "median_ms": round(statistics.median(times[_WARM_UP:]), 3),
            }
            file = session.end_profiling()
        if trace_file:
            shutil.copyfile(file, trace_file)
        return Trace.load(file), facts

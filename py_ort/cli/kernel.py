"""`py-ort kernel`: run user kernels while writing them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from py_ort.cli.common import browser_options, err, out
from py_ort.exceptions import PyOrtError

if TYPE_CHECKING:
    from py_ort import BrowserOptions
    from py_ort.user_kernels.trial import Trial
    from py_ort.user_kernels.watch import Report


@click.command(short_help="Run user kernels again when they change.")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--once", is_flag=True, help="Run the kernels once; the status is 1 if one fails.")
@click.option("--runs", default=5, show_default=True, help="Runs to time; the median is shown.")
@click.option("--tolerance", default=1e-3, show_default=True, help="Largest relative error against the reference.")
@browser_options
def kernel(file: Path, once: bool, runs: int, tolerance: float, browser: BrowserOptions) -> None:
    """Run the user kernels of FILE (.wgsl or .py) on their examples, and again whenever it changes.

    The browser stays open, so that a change is a matter of milliseconds. docs/user_kernels.md describes kernels, their
    examples and references.
    """
    from py_ort.user_kernels.watch import run_file, watch_file

    browser = replace(browser, idle_timeout=3600.0)  # between two versions there is no session
    if once:
        sys.exit(not _print(run_file(file, browser, runs), tolerance))
    err.print(f"watching {file}; Ctrl-C ends", highlight=False)
    for report in watch_file(file, browser, runs):
        _print(report, tolerance)


def _print(report: Report, tolerance: float) -> bool:
    """Print a report; return whether all is well."""
    well = not report.errors
    for name, error in report.errors.items():
        what = f"{name}: " if name else ""
        text = str(error) if isinstance(error, PyOrtError) else f"{type(error).__name__}: {error}"
        out.print(f"[red]✗[/] {what}", end="")
        out.print(text, markup=False, soft_wrap=True)
    for trial in report.trials:
        right = trial.max_error is None or trial.max_error <= tolerance
        well &= right
        _print_trial(trial, right)
    out.print(f"{report.seconds:.2f} s", style="dim")
    return well


def _print_trial(trial: Trial, right: bool) -> None:
    mark = "[green]✓[/]" if right else "[red]✗[/]"
    gpu = "" if trial.gpu_ms is None else f", GPU {trial.gpu_ms:.3f} ms"
    error = "" if trial.max_error is None else f", error {trial.max_error:.1e}"
    times = f"create {trial.create_ms:.0f} ms, run {trial.run_ms:.2f} ms{gpu}{error}"
    out.print(f"{mark} [bold]{trial.kernel.name}[/]  {times}", soft_wrap=True)
    for name, array in trial.outputs.items():
        numbers = ""
        if array.size:
            plain = array.astype(np.float64)
            numbers = f"min {plain.min():.6g}, mean {plain.mean():.6g}, max {plain.max():.6g}"
        out.print(f"    {name} {array.dtype}{list(array.shape)}  {numbers}", markup=False, soft_wrap=True)

"""`py-ort conformance`: cases from ONNX, onnxruntime-web or a folder, on our providers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import browser_options, err, out, progress, provider_option

if TYPE_CHECKING:
    from py_ort import BrowserOptions


@click.command()
@click.argument("source", metavar="onnx-node|ort-web:DIR|DIR")
@provider_option
@click.option("--no-fallback", is_flag=True, help="A node that the first provider cannot run is a failure.")
@click.option("--filter", "pattern", default="", metavar="RE", help="Only cases whose id contains this expression.")
@click.option("--jobs", default=0, help="Processes, each with a browser; default: one per core.")
@click.option("--expectations", type=click.Path(path_type=Path, exists=True), metavar="FILE", help="Known failures.")
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the results as JSON; - for stdout, and nothing else there."
)
@click.option("--html", "html_file", type=click.Path(path_type=Path), metavar="FILE", help="Write them as a page.")
@browser_options
def conformance(
    source: str,
    providers: tuple[str, ...],
    no_fallback: bool,
    pattern: str,
    jobs: int,
    expectations: Path | None,
    json_file: str | None,
    html_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Run conformance cases and compare the outputs.

    The status is 1 if a case failed; with --expectations, if a case failed that is not listed there, or one passed
    that is.
    """
    from py_ort.testing.report import page, summary
    from py_ort.testing.results import FAILED, read_expectations, surprises
    from py_ort.testing.runner import RunnerOptions, run_cases
    from py_ort.testing.sources import load_cases

    with progress() as report:
        report("collecting cases", 0, 0)
        cases = load_cases(source, pattern)
        options = RunnerOptions(providers or ("webgpu", "wasm"), not no_fallback, browser, jobs)
        results = run_cases(
            cases, options, lambda done, failed, total: report(f"running, {failed} failed", done, total)
        )
    if json_file == "-":
        sys.stdout.write(json.dumps(results.as_dict(), indent=1) + "\n")
    else:
        if json_file:
            Path(json_file).write_text(json.dumps(results.as_dict(), indent=1) + "\n")
        out.print(summary(results))
    if html_file:
        html_file.write_text(page(results, f"{source} on {', '.join(options.providers)}"))
    if expectations:
        known = {k: v for k, v in read_expectations(expectations).items() if k in results.cases}
        found = surprises(results, known)
        for text in found:
            err.print(text, markup=False)
        sys.exit(bool(found))
    sys.exit(results.count(FAILED) > 0)

"""`py-ort conformance`: cases from ONNX, onnxruntime-web or a folder, on our providers."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import browser_options, err, out, progress, provider_option

if TYPE_CHECKING:
    from py_ort import BrowserOptions


def _expression(context: click.Context, parameter: click.Parameter, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as e:
        raise click.BadParameter(f"{text!r} is no regular expression: {e}") from e


@click.command()
@click.argument("source", metavar="onnx-node|ort-web:DIR|DIR")
@provider_option
@click.option("--no-fallback", is_flag=True, help="A node that the first provider cannot run is a failure.")
@click.option("--skip-missing", is_flag=True, help="Skip all cases where the browser has not these providers.")
@click.option(
    *("--filter", "pattern"),
    default="",
    callback=_expression,
    metavar="RE",
    help="Only cases whose id contains this expression.",
)
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
    skip_missing: bool,
    pattern: re.Pattern[str],
    jobs: int,
    expectations: Path | None,
    json_file: str | None,
    html_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Run conformance cases and compare the outputs.

    The status is 1 if a case failed; with --expectations, if a case failed that is not listed there, or one passed
    that is, or one is listed that does not exist. It is 1 too if the browser has not all of the providers.
    """
    from py_ort.testing.report import page, summary
    from py_ort.testing.results import FAILED, read_expectations, surprises
    from py_ort.testing.runner import RunnerOptions, run_cases
    from py_ort.testing.sources import load_cases

    listed = read_expectations(expectations) if expectations else {}
    known = {name: reason for name, reason in listed.items() if pattern.search(name)}
    with progress() as report:
        report("collecting cases", 0, 0)
        cases = load_cases(source, pattern.pattern)
        options = RunnerOptions(
            providers or ("webgpu", "wasm"), skip_missing, fallback=not no_fallback, browser=browser, jobs=jobs
        )
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
        found = surprises(results, known)
        for text in found:
            err.print(text, markup=False, soft_wrap=True)
        sys.exit(bool(found))
    sys.exit(results.count(FAILED) > 0)

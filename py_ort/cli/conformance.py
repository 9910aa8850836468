"""`py-ort conformance`: cases from ONNX, onnxruntime-web or a folder, on our providers."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import OutputFile, browser_options, err, json_option, out, progress, provider_option, write_json
from py_ort.cli.inputs import Inputs, input_options

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
@click.option(
    "--jobs", type=click.IntRange(0, 64), default=0, help="Processes, each with a browser; default: one per core."
)
@input_options
@click.option(
    "--expectations",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Known failures.",
)
@json_option("the results")
@click.option("--html", "html_file", type=OutputFile(), metavar="FILE", help="Write them as a page.")
@browser_options
def conformance(
    source: str,
    providers: tuple[str, ...],
    no_fallback: bool,
    skip_missing: bool,
    pattern: re.Pattern[str],
    jobs: int,
    inputs: Inputs,
    expectations: Path | None,
    json_file: Path | None,
    html_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Run conformance cases and compare the outputs.

    The status is 1 if a case failed that is not known to, or one passed that is, or one of FILE does not exist; and if
    the browser has not all of the providers. Known failures are those of FILE; of ONNX's node cases and
    onnxruntime-web's operator files py_ort has lists of its own.
    """
    from py_ort.compiler.placement import canonical_provider
    from py_ort.testing.model_inputs import ModelInputs
    from py_ort.testing.report import page, summary, totals
    from py_ort.testing.results import expectations_of, read_expectations, surprises
    from py_ort.testing.runner import RunnerOptions, run_cases
    from py_ort.testing.sources import load_cases

    options = RunnerOptions(
        tuple(providers) or ("webgpu", "wasm"),
        skip_missing,
        fallback=not no_fallback,
        browser=browser,
        jobs=jobs,
        dims=inputs.dims,
        shapes=inputs.known_shapes(),
        feeds=inputs.files,
    )
    first = canonical_provider(options.providers[0])
    listed = read_expectations(expectations) if expectations else expectations_of(source, first, not no_fallback)
    known = {name: entry for name, entry in listed.items() if pattern.search(name)}
    with progress() as report:
        report("collecting cases", 0, 0)
        cases = load_cases(source, pattern.pattern)
        if not expectations:  # our own lists are about the newest onnx; another one has other cases
            ids = {case.id for case in cases}
            known = {name: entry for name, entry in known.items() if name in ids}
        if inputs:
            inputs.check(arg for case in cases for arg in ModelInputs.of(case.model).args)
        results = run_cases(cases, options, lambda done, failed, total: report("running", done, total, _failed(failed)))
    if write_json(results.as_dict(), json_file):
        if table := summary(results, known):
            out.print(table)
        out.print(totals(results))
    if html_file:
        html_file.write_text(page(results, f"{source} on {', '.join(options.providers)}"))
    found = surprises(results, known)
    for text in found:
        err.print(text, markup=False, soft_wrap=True)
    sys.exit(bool(found))


def _failed(count: int) -> str:
    return f"{count} failed" if count else ""

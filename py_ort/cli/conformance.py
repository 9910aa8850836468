"""`py-ort conformance`: cases from ONNX, onnxruntime-web or users, in browsers, on providers."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.browser.browser_options import BrowserOptions
from py_ort.cli.advice import in_flags
from py_ort.cli.common import (
    KERNEL_FILES,
    OutputFile,
    browsers_options,
    each_provider_option,
    engine_option,
    err,
    json_option,
    kernels_option,
    out,
    progress,
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options

if TYPE_CHECKING:
    from py_ort.testing.results import Results


def _expression(context: click.Context, parameter: click.Parameter, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as e:
        raise click.BadParameter(f"{text!r} is no regular expression: {e}") from e


@click.command(short_help="Run cases in each browser on each provider.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@each_provider_option
@engine_option
@click.option("--no-fallback", is_flag=True, help="Fail a case if the provider has no kernel for a node.")
@click.option("--skip-missing", is_flag=True, help="Skip all cases if the browser lacks the provider.")
@click.option(
    *("--filter", "pattern"),
    default="",
    callback=_expression,
    metavar="RE",
    help="Run only cases whose id matches this regular expression.",
)
@click.option(
    "--sample", type=click.IntRange(1), default=1, metavar="N", help="Run only one of N cases, always the same ones."
)
@click.option(
    "--jobs",
    type=click.IntRange(0, 64),
    default=0,
    help="Number of processes, each with a browser. Default: one for each core; with --browser capture: one.",
)
@click.option(
    *("--remote", "remotes"),
    multiple=True,
    metavar="B",
    help="Instead of --browser: a browser of another machine; repeat it for several, which then share the cases.",
)
@input_options
@kernels_option
@click.option(
    "--expectations",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A file of known failures.",
)
@click.option(
    *("--against", "earlier"),
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Show changes since an earlier --json FILE.",
)
@json_option("the results")
@click.option("--junit", "junit_file", type=OutputFile(), metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--html", "html_file", type=OutputFile(), metavar="FILE", help="Write the results as an HTML page.")
@browsers_options
@click.pass_context
def conformance(
    context: click.Context,
    sources: tuple[str, ...],
    providers: tuple[str, ...],
    engines: tuple[str, ...],
    no_fallback: bool,
    skip_missing: bool,
    pattern: re.Pattern[str],
    sample: int,
    jobs: int,
    remotes: tuple[str, ...],
    inputs: Inputs,
    expectations: Path | None,
    earlier: Path | None,
    json_file: Path | None,
    junit_file: Path | None,
    html_file: Path | None,
    browsers: list[BrowserOptions],
) -> None:
    """Run conformance cases in each browser, on each provider, by each engine, and compare the outputs.

    A SOURCE is onnx-node (ONNX's node tests), ort-web:DIR (onnxruntime-web's operator files), a folder of models with
    test_data_set_N folders, or a table of models, a .toml or .py file. The default provider is webgpu.

    The status is 1 if a case failed that is not known to fail, if a known failure passed or does not exist, or if a
    browser lacks the provider. Known failures are those of FILE. py_ort has lists of its own for ONNX's node cases
    and onnxruntime-web's operator files.
    """
    from py_ort.testing.nodes import nodes_of, prepare

    if remotes and [browser.browser for browser in browsers] != [BrowserOptions().browser]:
        raise click.UsageError("--remote takes the place of --browser: give one of them")
    nodes = tuple(nodes_of(remotes, browsers[0]))
    if nodes:
        prepare(nodes, jobs)  # before the imports below

    from py_ort.providers import DEFAULT, canonical_provider
    from py_ort.testing.changes import changes, read_runs
    from py_ort.testing.fleet import Fleet
    from py_ort.testing.junit import junit
    from py_ort.testing.matrix import places, run_matrix
    from py_ort.testing.model_inputs import ModelInputs
    from py_ort.testing.reproduction import of_case
    from py_ort.testing.results import FAILED, OURS, expectations_of, read_expectations, surprises
    from py_ort.testing.results_table import changed, page
    from py_ort.testing.runner import RunnerOptions
    from py_ort.testing.sources import load_cases, sampled

    options = RunnerOptions(
        skip_missing=skip_missing,
        fallback=not no_fallback,
        jobs=jobs,
        fleet=nodes,
        dims=inputs.dims,
        shapes=inputs.known_shapes(),
        feeds=inputs.files,
        kernels=context.meta.get(KERNEL_FILES, ()),
    )
    names = list(dict.fromkeys(map(canonical_provider, providers or DEFAULT[:1])))
    before = read_runs(earlier) if earlier else None
    where = places(options, browsers[:1] if remotes else browsers, names, engines)
    with ExitStack() as stack:
        report = stack.enter_context(progress())
        fleet = stack.enter_context(Fleet(where[0])) if remotes else None
        report("collecting cases", 0, 0)
        cases = sampled(load_cases(sources, pattern.pattern), sample)
        if inputs:
            inputs.check(arg for case in cases for arg in ModelInputs.of(case.model).args)
        runs = run_matrix(
            cases,
            where,
            lambda title, done, failed, total: report(f"running on {title}", done, total, _failed(failed)),
            fleet,
        )
    by_id = {case.id: case for case in cases}
    given = read_expectations(expectations) if expectations else None
    for run in runs:
        listed = given
        if listed is None and run.engine != OURS:
            listed = {}
        elif listed is None:
            own = [expectations_of(source, run.providers[0], not no_fallback) for source in sources]
            listed = {name: entry for each in own for name, entry in each.items()}
        # Our own lists are about the newest onnx; another one has other cases.
        strict = given is not None and sample == 1
        run.known = {
            name: entry for name, entry in listed.items() if (strict and pattern.search(name)) or name in by_id
        }
    for how, run in zip(where, runs, strict=True):
        for name, outcome in run.cases.items():
            if outcome.status == FAILED and not run.fleet:
                outcome.commands = [of_case(by_id[name], how, sources)]
    found = None if before is None else changes(runs, before)
    alone = runs[0].as_dict() if len(runs) == 1 else {}
    more = {} if found is None else {"changes": [change.as_dict() for change in found]}
    if write_json({**alone, "runs": [run.as_run() for run in runs], **more}, json_file):
        _print(runs)
        for line in () if found is None else changed(found):
            out.print(line, markup=False, soft_wrap=True)
    if junit_file:
        junit_file.write_text(junit(runs), encoding="utf-8")
    if html_file:
        groups = {case.id: case.group for case in cases}
        html_file.write_text(page(runs, f"py-ort conformance {' '.join(sources)}", groups, found), encoding="utf-8")
    unforeseen: dict[str, list[str]] = {}
    for run in runs:
        for text in surprises(run):
            unforeseen.setdefault(in_flags(text), []).append(run.title)
    for text, titles in unforeseen.items():
        err.print(f"{', '.join(titles)}: {text}" if len(runs) > 1 else text, markup=False, soft_wrap=True)
    sys.exit(bool(unforeseen))


def _print(runs: list[Results]) -> None:
    from py_ort.testing.results_table import fleet, overview, summary, totals

    for run in runs:
        if not run.error and (table := summary(run)):
            if len(runs) > 1:
                out.print(f"[bold]{run.title}[/]")
            out.print(table)
        if run.fleet:
            out.print(fleet(run))
    if len(runs) > 1:
        out.print(overview(runs))
    elif not runs[0].error:
        out.print(totals(runs[0]))


def _failed(count: int) -> str:
    return f"{count} failed" if count else ""

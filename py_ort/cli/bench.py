"""`py-ort bench`: how quick models are, here and on onnxruntime-web."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options
from py_ort.exceptions import PyOrtError

if TYPE_CHECKING:
    from py_ort import BrowserOptions
    from py_ort.bench import Row
    from py_ort.bench.in_pages import PageRow


@click.command()
@click.argument("models", type=click.Path(path_type=Path, exists=True), nargs=-1, metavar="MODEL...")
@click.option("--bridge", is_flag=True, help="Time the bridge between Python and the page instead, by bare transfers.")
@click.option(
    "--page",
    "in_page",
    is_flag=True,
    help="Time static pages of .pyort files instead, as visitors do: from navigation to the first result.",
)
@click.option(
    "--model",
    "source",
    type=click.Path(path_type=Path, exists=True),
    metavar="MODEL.onnx",
    help="With --page: what onnxruntime-web gets. Default: the ONNX file of the same name beside the .pyort file.",
)
@click.option("--visits", type=click.IntRange(1), default=3, show_default=True, help="Of a page, cold and then warm.")
@provider_option
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True, help="Of wasm, both engines.")
@runs_option(10, "Steady runs; three more warm up.")
@click.option("--against", type=click.Choice(["onnxruntime-web"]), help="Time this engine too, in turn.")
@input_options
@kernels_option
@json_option("the rows")
@click.option("--html", "html_file", type=OutputFile(), metavar="FILE", help="Write the rows as a page.")
@browser_options
def bench(
    models: tuple[Path, ...],
    bridge: bool,
    in_page: bool,
    source: Path | None,
    visits: int,
    providers: tuple[str, ...],
    threads: int,
    runs: int,
    against: str | None,
    inputs: Inputs,
    json_file: Path | None,
    html_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Time MODELs with random inputs; the clock is the page's own, uploads and downloads included."""
    from py_ort.bench import failed, measure
    from py_ort.bench.report import bridge_table, page, table
    from py_ort.compiler.placement import canonical_provider
    from py_ort.testing.model_inputs import ModelInputs

    names = list(dict.fromkeys(map(canonical_provider, providers or ("webgpu", "wasm"))))
    if bridge == bool(models):
        raise click.UsageError("give MODELs, or --bridge without any")
    if bridge:
        from py_ort.bench.bridge import measure_bridge

        measured = measure_bridge(names, browser)
        if write_json([row.as_dict() for row in measured], json_file):
            out.print(bridge_table(measured))
        return
    if in_page:
        if html_file or inputs.files:
            raise click.UsageError("--page takes neither --html nor --input")
        sys.exit(_pages(models, source, names, threads, runs, visits, against is not None, inputs, json_file, browser))
    if inputs:
        inputs.check(arg for model in models for arg in ModelInputs.of(model).args)
    rows: list[Row] = []
    pairs = [(model, provider) for model in models for provider in names]
    with progress() as report:
        for number, (model, provider) in enumerate(pairs):

            def at(stage: str, done: int, total: int, before: int = number) -> None:
                report(stage, before * total + done, len(pairs) * total)

            flavors = () if against is None else ("webgpu", "jsep") if provider == "webgpu" else ("wasm",)
            try:
                rows += measure(
                    model,
                    provider,
                    threads=threads,
                    runs=runs,
                    against=flavors,
                    browser=browser,
                    feeds=inputs.files,
                    shapes=inputs.shapes,
                    dims=inputs.dims,
                    progress=at,
                )
            except PyOrtError as e:
                rows.append(failed(model, provider, threads, e))
    if write_json([row.as_dict() for row in rows], json_file):
        out.print(table(rows))
    if html_file:
        html_file.write_text(page(rows), encoding="utf-8")
    failures = _tell_failures(rows)
    if any(row.error.startswith(("InvalidArgument", "RuntimeException")) for row in rows):
        err.print("inputs of other sizes and contents are given with --shape, --dim and --input")
    sys.exit(failures)


def _pages(
    models: tuple[Path, ...],
    source: Path | None,
    names: list[str],
    threads: int,
    runs: int,
    visits: int,
    against: bool,
    inputs: Inputs,
    json_file: Path | None,
    browser: BrowserOptions,
) -> bool:
    """Time pages; return whether one failed."""
    from py_ort.bench.in_pages import measure_pages, page_table

    with progress() as report:
        rows = [
            row
            for model in models
            for row in measure_pages(
                model,
                names,
                source=source,
                threads=threads,
                runs=runs,
                visits=visits,
                against=against,
                browser=browser,
                shapes=inputs.shapes,
                dims=inputs.dims,
                progress=report,
            )
        ]
    if write_json([row.as_dict() for row in rows], json_file):
        out.print(page_table(rows))
    return _tell_failures(rows)


def _tell_failures(rows: Sequence[Row] | Sequence[PageRow]) -> bool:
    """Say what failed; return whether anything did."""
    for row in rows:
        if row.error:
            err.print(f"{row.model} on {row.engine} {row.provider}: {row.error}", markup=False, soft_wrap=True)
    return any(row.error for row in rows)

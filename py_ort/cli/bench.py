"""`py-ort bench`: times of models, also in onnxruntime-web."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.advice import in_flags
from py_ort.cli.common import (
    OutputFile,
    browsers_options,
    each_provider_option,
    engine_option,
    err,
    json_option,
    kernels_option,
    out,
    progress,
    runs_option,
    threads_option,
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options
from py_ort.exceptions import PyOrtError

#: The other engine.
PEER = "onnxruntime-web"

if TYPE_CHECKING:
    from py_ort import BrowserOptions
    from py_ort.bench import Row
    from py_ort.bench.decode import DecodeRow
    from py_ort.bench.in_pages import PageRow


def _against(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[bool, list[Path]]:
    """Return True if the arguments name the peer, and the files."""
    files = [Path(text) for text in given if text != PEER]
    for file in files:
        if not file.is_file():
            raise click.BadParameter(f"{str(file)!r} is neither {PEER} nor a file of earlier rows")
    return len(files) < len(given), files


@click.command(short_help="Time MODELs, also in onnxruntime-web.")
@click.argument("models", type=click.Path(path_type=Path, exists=True), nargs=-1, metavar="MODEL...")
@click.option(
    "--bridge",
    is_flag=True,
    help="Instead of models, time the bridge between Python and the page, by transfers without a model.",
)
@click.option(
    "--page",
    "in_page",
    is_flag=True,
    help="Time static pages instead, from navigation to the first result; MODELs are .pyort files.",
)
@click.option(
    "--decode",
    is_flag=True,
    help="Time decoders with KV caches instead: the prompt, then token by token.",
)
@click.option(
    "--past", type=click.IntRange(1), default=512, show_default=True, help="With --decode: tokens of the prompt."
)
@click.option(
    *("--tokens", "--words", "words"),
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="With --decode: tokens to generate after the prompt.",
)
@click.option(
    "--model",
    "source",
    type=click.Path(path_type=Path, exists=True),
    metavar="MODEL.onnx",
    help="With --page: the model for onnxruntime-web. Default: the ONNX file beside the .pyort file, of the same name.",
)
@click.option(
    "--visits",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="With --page: visits of each page, with an empty browser cache and then again.",
)
@each_provider_option
@engine_option
@threads_option(1, "Threads of wasm, for all engines.")
@runs_option(10, "Runs to time, after three to warm up.")
@click.option(
    "--against",
    multiple=True,
    callback=_against,
    metavar="onnxruntime-web|FILE",
    help="Also time onnxruntime-web, in turn with py_ort; or show the medians of an earlier --json FILE.",
)
@click.option(
    "--quantize",
    multiple=True,
    type=click.Choice(["dynamic", "qdq"]),
    help="Also time MODELs quantized by native onnxruntime in this way; repeat it for both ways.",
)
@input_options
@kernels_option
@json_option("the rows")
@click.option("--html", "html_file", type=OutputFile(), metavar="FILE", help="Write the rows as an HTML page.")
@browsers_options
def bench(
    models: tuple[Path, ...],
    bridge: bool,
    in_page: bool,
    decode: bool,
    past: int,
    words: int,
    source: Path | None,
    visits: int,
    providers: tuple[str, ...],
    engines: tuple[str, ...],
    threads: int,
    runs: int,
    against: tuple[bool, list[Path]],
    quantize: tuple[str, ...],
    inputs: Inputs,
    json_file: Path | None,
    html_file: Path | None,
    browsers: list[BrowserOptions],
) -> None:
    """Time MODELs with random inputs, in each browser, on each provider.

    The page measures the times, which include uploads and downloads. A failure has a row with the reason.
    """
    from py_ort.bench import failed, measure
    from py_ort.bench.benchmark_table import bridge_table, earlier_medians, page, table
    from py_ort.bench.floor import Floors
    from py_ort.providers import DEFAULT, canonical_provider
    from py_ort.testing.model_inputs import ModelInputs
    from py_ort.testing.results import OURS

    names = list(dict.fromkeys(map(canonical_provider, providers or DEFAULT)))
    if decode and bridge:
        raise click.UsageError("--decode or --bridge, not both")
    if engines and (bridge or in_page):
        raise click.UsageError("--bridge and --page take no --engine")
    if bridge == bool(models):
        raise click.UsageError("give MODELs, or --bridge without any")
    if quantize and (bridge or in_page or decode):
        raise click.UsageError("--bridge, --page and --decode take no --quantize")
    peer, files = against
    if len(browsers) > 1 and (bridge or in_page):
        raise click.UsageError("--bridge and --page take one --browser")
    if bridge:
        from py_ort.bench.bridge import measure_bridge

        measured = measure_bridge(names, browsers[0])
        if write_json([row.as_dict() for row in measured], json_file):
            out.print(bridge_table(measured))
        return
    if decode:
        if in_page or html_file or inputs or files:
            raise click.UsageError("--decode takes neither --page nor --html, no inputs, and no file to compare with")
        sys.exit(_decoders(models, names, past, words, threads, peer, engines, json_file, browsers))
    if in_page:
        if html_file or inputs.files or files:
            raise click.UsageError("--page takes neither --html nor --input, and no file to compare with")
        sys.exit(_pages(models, source, names, threads, runs, visits, peer, inputs, json_file, browsers[0]))
    if inputs:
        inputs.check(arg for model in models for arg in ModelInputs.of(model).args)
    before = {key: ms for file in files for key, ms in earlier_medians(file).items()}
    rows: list[Row] = []
    floors = Floors()
    courses = [(model, provider, browser) for model in models for provider in names for browser in browsers]
    with progress() as report:
        for number, (model, provider, browser) in enumerate(courses):

            def at(stage: str, done: int, total: int, before: int = number) -> None:
                report(stage, before * total + done, len(courses) * total)

            try:
                rows += measure(
                    model,
                    provider,
                    threads=threads,
                    runs=runs,
                    against=_flavors(provider, peer, engines),
                    ours=not engines or OURS in engines,
                    quantize=list(dict.fromkeys(quantize)),
                    browser=browser,
                    feeds=inputs.files,
                    shapes=inputs.shapes,
                    dims=inputs.dims,
                    progress=at,
                    floors=floors,
                )
            except PyOrtError as e:
                rows.append(failed(model, provider, threads, browser, e))
    for row in rows:
        row.before_ms = before.get(row.key)
    if write_json([row.as_dict() for row in rows], json_file):
        out.print(table(rows))
    if html_file:
        html_file.write_text(page(rows), encoding="utf-8")
    compared = {row.model for row in rows if row.reference}
    for why in dict.fromkeys(row.no_reference for row in rows if row.model not in compared and not row.error):
        err.print(f"max rel. error: there is nothing to compare with: {why}", markup=False, soft_wrap=True)
    failures = _tell_failures(rows)
    if any(row.error.startswith(("InvalidArgument", "RuntimeException")) for row in rows):
        err.print("inputs of other sizes and contents are given with --shape, --dim and --input")
    sys.exit(failures)


def _flavors(provider: str, peer: bool, engines: Sequence[str]) -> list[str]:
    """Return the builds of onnxruntime-web that are timed on a provider."""
    from py_ort.bench.peer import FLAVORS, flavor_of
    from py_ort.testing.results import OURS

    if peer:
        return [name for name, flavor in FLAVORS.items() if flavor.provider == provider]
    return list(dict.fromkeys(flavor_of(engine, provider) for engine in engines if engine != OURS))


def _decoders(
    models: tuple[Path, ...],
    names: list[str],
    past: int,
    words: int,
    threads: int,
    against: bool,
    engines: tuple[str, ...],
    json_file: Path | None,
    browsers: list[BrowserOptions],
) -> bool:
    """Time decoders; return whether one failed."""
    from py_ort.bench.decode import decode_table, measure_decoder
    from py_ort.testing.results import OURS

    with progress() as report:
        rows = [
            row
            for model in models
            for name in names
            for browser in browsers
            for row in measure_decoder(
                model,
                name,
                past=past,
                words=words,
                threads=threads,
                against=_flavors(name, against, engines),
                ours=not engines or OURS in engines,
                browser=browser,
                progress=report,
            )
        ]
    if write_json([row.as_dict() for row in rows], json_file):
        out.print(decode_table(rows))
    return _tell_failures(rows)


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


def _tell_failures(rows: Sequence[Row] | Sequence[PageRow] | Sequence[DecodeRow]) -> bool:
    """Say what failed; return whether anything did."""
    for row in rows:
        if row.error:
            where = " ".join(filter(None, (row.engine, row.provider, getattr(row, "browser", ""))))
            err.print(f"{row.model} on {where}: {in_flags(row.error)}", markup=False, soft_wrap=True)
    return any(row.error for row in rows)

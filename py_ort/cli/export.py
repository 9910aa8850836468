"""`py-ort export`: a model as a file that pages run without Python."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.markup import escape
from rich.table import Column, Table

from py_ort.cli.common import (
    KERNEL_FILES,
    err,
    json_option,
    kernels_option,
    out,
    progress,
    provider_option,
    write_json,
)
from py_ort.cli.inputs import Inputs, export_options
from py_ort.exporting import ExportOptions
from py_ort.providers import DEFAULT, PROVIDERS

if TYPE_CHECKING:
    import numpy as np

    from py_ort.exporting.tree import TreeRow


@click.command(short_help="Write MODEL as a file for pages without Python.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    metavar="DIR",
    help="Folder to write to. Default: the current one.",
)
@provider_option
@export_options
@kernels_option
@click.option(
    "--page", is_flag=True, help="Also write a page that runs the model, DIR/index.html, and the files that it needs."
)
@click.option(
    "--runtime",
    type=click.Choice(["full", "minimal"]),
    default="full",
    help="With --page: scripts with all kernels (full, the default), or with those of the models in DIR (minimal).",
)
@click.option(
    "--check",
    "checked",
    is_flag=True,
    help="Run the exported model in each installed browser, and compare it with native onnxruntime.",
)
@click.option(
    "--browser", "browsers", multiple=True, metavar="B", help="With --check: only in this browser; may be repeated."
)
@click.option("--tolerance", type=click.FloatRange(min=0), help="With --check: largest relative difference of outputs.")
@click.option("--part-size", type=click.IntRange(min=1), metavar="MIB", help="Split the file into parts of this size.")
@click.option(
    "--keep-names", is_flag=True, help="Name the exported file NAME.onnx, so that URLs of the model need not change."
)
@click.option("--update", is_flag=True, help="Skip MODEL if its export in DIR is up to date; always on for a folder.")
@json_option("the files, and the result of --check,")
@click.option("--force", is_flag=True, help="For a folder: export all models, even if they are up to date.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="For a folder: number of models exported at once. Default: one for each CPU.",
)
@click.pass_context
def export(
    context: click.Context,
    model: Path,
    output: Path,
    providers: tuple[str, ...],
    shapes: Sequence[Mapping[str, Sequence[int]]],
    dims: Mapping[str, int],
    files: Mapping[str, np.ndarray],
    page: bool,
    runtime: Literal["full", "minimal"],
    checked: bool,
    browsers: tuple[str, ...],
    tolerance: float | None,
    part_size: int | None,
    keep_names: bool,
    update: bool,
    json_file: Path | None,
    force: bool,
    jobs: int | None,
) -> None:
    """Write MODEL to DIR as NAME.pyort, which a page runs without Python.

    The file has the weights, and two plans by default: one for webgpu and wasm, one for wasm alone (not with
    --kernels, which wasm does not run). `InferenceSession` opens the file, too, so that tests run the file you ship.

    If MODEL is a script, such as transformers.web.js, the small ONNX models in it are exported; a page sets env.exports
    to DIR.

    If MODEL is a folder, each .onnx file below it is exported, unless its export is up to date. DIR mirrors it.
    """
    import py_ort
    from py_ort.testing.model_inputs import ModelInputs

    if not checked and (files or browsers or tolerance is not None):
        raise click.UsageError("--input, --browser and --tolerance are for --check")
    if runtime == "minimal" and not page:
        raise click.UsageError("--runtime is for --page, which writes a runtime")
    kernels = [str(file) for file in context.meta.get(KERNEL_FILES, ())]
    # No other provider runs user kernels.
    providers = providers or tuple(name for name in DEFAULT if not kernels or PROVIDERS[name].user_kernels)
    if model.is_dir() or (update and model.is_file()):
        if page or checked:
            raise click.UsageError("--page and --check are for a single model, without --update")
        chosen = ExportOptions(providers, dims, shapes, part_size and part_size << 20, kernels)
        _export_tree(model, output, chosen, keep_names, jobs or 0, force, json_file)
        return
    if force or jobs:
        raise click.UsageError("--force and --jobs are for a folder of models")
    if model.suffix in (".js", ".mjs"):
        from py_ort.exporting.embedded import export_embedded

        with progress() as report:
            written = export_embedded(model, output, progress=report)
        if write_json(_json(written), json_file):
            _print(written)
        return
    with progress() as report:
        report("reading the model", 0, 0)
        described = ModelInputs.of(model)
        for shape in shapes or ({},):
            Inputs(shape, files, dims).check((*described.args, *described.overridable))
        output.mkdir(parents=True, exist_ok=True)
        options = Inputs(dims=dims).fix(py_ort.SessionOptions())
        file = output / (model.name if keep_names else f"{model.stem}.pyort")
        if file.exists() and file.samefile(model):
            raise click.UsageError(f"{file} would take the place of the model itself: give another folder by -o")
        written = py_ort.export(
            model,
            file,
            providers=list(providers),
            shapes=shapes,
            options=options,
            part_size=part_size and part_size << 20,
            page=page,
            runtime=runtime,
            progress=report,
        )
        found = None
        if checked:
            from py_ort.exporting.checking.check_results import table, words, write_report  # with what drives browsers

            found = py_ort.check_export(
                file, model, files, browsers=browsers, tolerance=tolerance, values=described.accepted, progress=report
            )
            written += write_report(found, file)
    checks = {} if found is None else {"check": found.as_dict()}
    if write_json({**_json(written), **checks}, json_file):
        _print(written)
        if page:
            served = f"{output / 'index.html'}  serve the folder, e.g. py-ort serve {output}"
            out.print(served, markup=False, soft_wrap=True)
        if found is not None:
            out.print(table(found))
            for text in words(found):
                out.print(text, markup=False, soft_wrap=True)
    sys.exit(found is not None and not found.ok)


def _export_tree(
    source: Path,
    output: Path,
    options: ExportOptions,
    keep_names: bool,
    jobs: int,
    force: bool,
    json_file: Path | None,
) -> None:
    """Export it, print one table, and end with status 1 if a model could not be exported."""
    from py_ort.exporting import export_tree

    with progress() as report:
        rows = export_tree(
            source, output, options=options, keep_names=keep_names, jobs=jobs, force=force, progress=report
        )
    failed = [row for row in rows if row.status == "failed"]
    shown = write_json({"models": [_row(row) for row in rows]}, json_file)
    if shown:
        _print_tree(rows, source if source.is_dir() else source.parent, output)
    for row in failed:
        (out if shown else err).print(f"{row.model}: {row.error}", markup=False, soft_wrap=True)
    sys.exit(bool(failed))


def _row(row: TreeRow) -> dict[str, Any]:
    paths = {"model": str(row.model), "file": str(row.file), "sources": [str(file) for file in row.sources]}
    return {**asdict(row), **paths}


def _print_tree(rows: Sequence[TreeRow], base: Path, output: Path) -> None:
    table = Table(
        "model", f"in {output}", "", Column("MB", justify="right"), Column("seconds", justify="right"), box=None
    )
    for row in rows:
        names = str(row.model.relative_to(base)), str(row.file.relative_to(output))
        size, seconds = (f"{row.size / 1e6:.2f}" if row.size else "", f"{row.seconds:.1f}" if row.seconds else "")
        table.add_row(*map(escape, (*names, row.status, size, seconds)))
    out.print(table)


def _json(files: Sequence[Path]) -> dict[str, Any]:
    return {"files": [{"path": str(file), "bytes": file.stat().st_size} for file in files]}


def _print(files: Sequence[Path]) -> None:
    for file in files:
        out.print(f"{file}  {file.stat().st_size / 1e6:.2f} MB", markup=False, soft_wrap=True)

"""`py-ort export`: a model as a file that pages run without Python."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from rich.markup import escape
from rich.table import Column, Table

from py_ort.cli.common import KERNEL_FILES, kernels_option, out, progress, provider_option
from py_ort.cli.inputs import Inputs, export_options
from py_ort.exporting import ExportOptions
from py_ort.providers import DEFAULT

if TYPE_CHECKING:
    import numpy as np


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    metavar="DIR",
    help="Folder to write to; made if need be. Default: the current one.",
)
@provider_option
@export_options
@kernels_option
@click.option("--page", is_flag=True, help="Write DIR/index.html, too, a page that runs it, and what that needs.")
@click.option(
    "--runtime",
    type=click.Choice(["full", "minimal"]),
    default="full",
    help="For --page: kernels in its scripts: all (the default), or those of the models in DIR only.",
)
@click.option(
    "--check", "checked", is_flag=True, help="Run it in each installed browser, against native onnxruntime, and report."
)
@click.option("--browser", "browsers", multiple=True, metavar="B", help="For --check: this one only; may be repeated.")
@click.option("--tolerance", type=click.FloatRange(min=0), help="For --check: how far outputs may differ, relatively.")
@click.option("--part-size", type=click.IntRange(min=1), metavar="MIB", help="Split the file into parts of this size.")
@click.option("--keep-names", is_flag=True, help="Write NAME.onnx, so that a model keeps its URL.")
@click.option("--update", is_flag=True, help="Skip a MODEL that is up to date in DIR, as is done with a folder.")
@click.option("--force", is_flag=True, help="Of a folder: export also what is up to date.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Of a folder: models at once. Default: CPUs.")
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
    force: bool,
    jobs: int | None,
) -> None:
    """Write MODEL to DIR as NAME.pyort, which a page runs without Python.

    The file has a plan for each provider (default: webgpu, and wasm alone), and the weights once. Sessions open it,
    too: what is shipped is what is tested.

    If MODEL is a script, such as transformers.web.js, the small ONNX models in it are exported; a page sets env.exports
    to DIR.

    If MODEL is a folder, each .onnx file below it is exported, unless its export is up to date; DIR mirrors the folder.
    """
    import py_ort
    from py_ort.testing.model_inputs import ModelInputs

    if not checked and (files or browsers or tolerance is not None):
        raise click.UsageError("--input, --browser and --tolerance are for --check")
    if runtime == "minimal" and not page:
        raise click.UsageError("--runtime is for --page, which writes a runtime")
    if model.is_dir() or (update and model.is_file()):
        if page or checked:
            raise click.UsageError("--page and --check are for a single model, without --update")
        kernels = [str(file) for file in context.meta.get(KERNEL_FILES, ())]
        chosen = ExportOptions(providers or DEFAULT, dims, shapes, part_size and part_size << 20, kernels)
        _export_tree(model, output, chosen, keep_names, jobs or 0, force)
        return
    if force or jobs:
        raise click.UsageError("--force and --jobs are for a folder of models")
    if model.suffix in (".js", ".mjs"):
        from py_ort.exporting.embedded import export_embedded

        with progress() as report:
            _print(export_embedded(model, output, progress=report))
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
            providers=list(providers) or DEFAULT,
            shapes=shapes,
            options=options,
            part_size=part_size and part_size << 20,
            page=page,
            runtime=runtime,
            progress=report,
        )
        found = None
        if checked:
            from py_ort.exporting.checking.report import table, words, write_report  # with what drives browsers

            found = py_ort.check_export(
                file, model, files, browsers=browsers, tolerance=tolerance, values=described.accepted, progress=report
            )
            written += write_report(found, file)
    _print(written)
    if page:
        out.print(
            f"{output / 'index.html'}  serve the folder, e.g. py-ort serve {output}", markup=False, soft_wrap=True
        )
    if found is not None:
        out.print(table(found))
        for text in words(found):
            out.print(text, markup=False, soft_wrap=True)
        sys.exit(not found.ok)


def _export_tree(source: Path, output: Path, options: ExportOptions, keep_names: bool, jobs: int, force: bool) -> None:
    """Export it, print one table, and end with status 1 if a model could not be exported."""
    from py_ort.exporting import export_tree

    with progress() as report:
        rows = export_tree(
            source, output, options=options, keep_names=keep_names, jobs=jobs, force=force, progress=report
        )
    base = source if source.is_dir() else source.parent
    table = Table(
        "model", f"in {output}", "", Column("MB", justify="right"), Column("seconds", justify="right"), box=None
    )
    for row in rows:
        names = str(row.model.relative_to(base)), str(row.file.relative_to(output))
        size, seconds = (f"{row.size / 1e6:.2f}" if row.size else "", f"{row.seconds:.1f}" if row.seconds else "")
        table.add_row(*map(escape, (*names, row.status, size, seconds)))
    out.print(table)
    failed = [row for row in rows if row.status == "failed"]
    for row in failed:
        out.print(f"{row.model}: {row.error}", markup=False, soft_wrap=True)
    sys.exit(bool(failed))


def _print(files: Sequence[Path]) -> None:
    for file in files:
        out.print(f"{file}  {file.stat().st_size / 1e6:.2f} MB", markup=False, soft_wrap=True)

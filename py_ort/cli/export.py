"""`py-ort export`: a model as a file that pages run without Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from py_ort.cli.common import kernels_option, out, progress, provider_option
from py_ort.cli.inputs import Inputs, export_options


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
@click.option("--part-size", type=click.IntRange(min=1), metavar="MIB", help="Split the file into parts of this size.")
def export(
    model: Path,
    output: Path,
    providers: tuple[str, ...],
    shapes: Sequence[Mapping[str, Sequence[int]]],
    dims: Mapping[str, int],
    page: bool,
    part_size: int | None,
) -> None:
    """Write MODEL to DIR as NAME.pyort, which a page runs without Python.

    The file has a plan for each provider (default: webgpu, and wasm alone), and the weights once. Sessions open it,
    too: what is shipped is what is tested.

    If MODEL is a script, such as transformers.web.js, the small ONNX models in it are exported; a page sets env.exports
    to DIR.
    """
    import py_ort

    if model.suffix in (".js", ".mjs"):
        from py_ort.exporting.embedded import export_embedded

        with progress() as report:
            _print(export_embedded(model, output, progress=report))
        return
    with progress() as report:
        report("reading the model", 0, 0)
        for shape in shapes or ({},):
            Inputs(shape, dims=dims).load(model)
        output.mkdir(parents=True, exist_ok=True)
        options = Inputs(dims=dims).fix(py_ort.SessionOptions())
        files = py_ort.export(
            model,
            output / f"{model.stem}.pyort",
            providers=list(providers) or ("webgpu", "wasm"),
            shapes=shapes,
            options=options,
            part_size=part_size and part_size << 20,
            page=page,
            progress=report,
        )
    _print(files)
    if page:
        out.print(
            f"{output / 'index.html'}  serve the folder, e.g. py-ort serve {output}", markup=False, soft_wrap=True
        )


def _print(files: Sequence[Path]) -> None:
    for file in files:
        out.print(f"{file}  {file.stat().st_size / 1e6:.2f} MB", markup=False, soft_wrap=True)

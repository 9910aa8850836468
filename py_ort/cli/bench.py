"""`py-ort bench`: how quick models are, here and on onnxruntime-web."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import browser_options, kernels_option, out, progress, provider_option, shape_option

if TYPE_CHECKING:
    from py_ort import BrowserOptions


@click.command()
@click.argument("models", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True, metavar="MODEL...")
@provider_option
@click.option("--threads", default=1, show_default=True, help="Threads of wasm, for both engines.")
@click.option("--runs", default=10, show_default=True, help="Steady runs; three more warm up.")
@click.option("--against", type=click.Choice(["onnxruntime-web"]), help="Time this engine too, in turn.")
@shape_option
@kernels_option
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the rows as JSON; - for stdout, and nothing else there."
)
@click.option("--html", "html_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the rows as a page.")
@browser_options
def bench(
    models: tuple[Path, ...],
    providers: tuple[str, ...],
    threads: int,
    runs: int,
    against: str | None,
    shapes: dict[str, list[int]],
    json_file: str | None,
    html_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Time MODELs with random inputs; the clock is the page's own, uploads and downloads included."""
    from py_ort.bench import Row, measure
    from py_ort.bench.report import page, table
    from py_ort.providers import canonical_provider

    rows: list[Row] = []
    with progress() as report:
        for model in models:
            for provider in dict.fromkeys(map(canonical_provider, providers or ("webgpu", "wasm"))):
                flavours = () if against is None else ("webgpu", "jsep") if provider == "webgpu" else ("wasm",)
                rows += measure(
                    model,
                    provider,
                    threads=threads,
                    runs=runs,
                    against=flavours,
                    browser=browser,
                    shapes=shapes,
                    progress=lambda text: report(text, 0, 0),
                )
    text = json.dumps([row.as_dict() for row in rows], indent=1)
    if json_file == "-":
        sys.stdout.write(text + "\n")
    else:
        if json_file:
            Path(json_file).write_text(text + "\n")
        out.print(table(rows))
    if html_file:
        html_file.write_text(page(rows))

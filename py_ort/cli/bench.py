"""`py-ort bench`: how quick models are, here and on onnxruntime-web."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.common import browser_options, kernels_option, out, progress, provider_option, shape_option

if TYPE_CHECKING:
    from rich.table import Table

    from py_ort import BrowserOptions


@click.command()
@click.argument("models", type=click.Path(path_type=Path, exists=True), nargs=-1, metavar="MODEL...")
@click.option("--bridge", is_flag=True, help="Time the bridge between Python and the page instead, by bare transfers.")
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
    bridge: bool,
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
    from py_ort.bench.report import bridge_table, page, table
    from py_ort.providers import canonical_provider

    names = list(dict.fromkeys(map(canonical_provider, providers or ("webgpu", "wasm"))))
    if bridge == bool(models):
        raise click.UsageError("give MODELs, or --bridge without any")
    if bridge:
        from py_ort.bench.bridge import measure_bridge

        measured = measure_bridge(names, browser)
        _write([row.as_dict() for row in measured], json_file, bridge_table(measured))
        return
    rows: list[Row] = []
    with progress() as report:
        for model in models:
            for provider in names:
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
    _write([row.as_dict() for row in rows], json_file, table(rows))
    if html_file:
        html_file.write_text(page(rows))


def _write(rows: list[dict[str, Any]], json_file: str | None, table: Table) -> None:
    text = json.dumps(rows, indent=1)
    if json_file == "-":
        sys.stdout.write(text + "\n")
        return
    if json_file:
        Path(json_file).write_text(text + "\n")
    out.print(table)

"""`py-ort placement`: where the nodes of a model run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import (
    OutputFile,
    browser_options,
    json_option,
    kernels_option,
    out,
    progress,
    provider_option,
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options

if TYPE_CHECKING:
    from rich.table import Table

    from py_ort import BrowserOptions, SessionOptions
    from py_ort.providers import Placement


@click.command(short_help="Show the provider of each node, with the reason.")
@click.argument("model", type=click.Path(path_type=Path))
@provider_option
@input_options
@kernels_option
@browser_options
@click.option("--nodes", "each", is_flag=True, help="List all nodes, not only the summary.")
@json_option("all nodes")
@click.option("--html", "html_file", type=OutputFile(), metavar="FILE", help="Write an HTML page that draws the graph.")
def placement(
    model: Path,
    providers: tuple[str, ...],
    inputs: Inputs,
    browser: BrowserOptions,
    each: bool,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Show the provider of each node of MODEL, with the reason."""
    from py_ort import SessionOptions
    from py_ort.runtime.placing import place

    with progress() as report:
        inputs.describe(model)
        options = inputs.fix(SessionOptions(), shapes=True)
        found = place(model, options, list(providers) or None, browser=browser, progress=report)
    if html_file:
        html_file.write_text(_page(model, found, options, inputs), encoding="utf-8")
    if write_json(found.to_json(), json_file):
        out.print(_table(found, each))
        for line in found.summary():
            out.print(line, markup=False, soft_wrap=True)


def _page(model: Path, found: Placement, options: SessionOptions, inputs: Inputs) -> str:
    from py_ort.compiler import compile_model
    from py_ort.pages.graph import given, page
    from py_ort.runtime.compiling import compile_options

    compiled = compile_model(model, providers=found.providers, options=compile_options({}, options))
    facts = {"model": model, "runs": "; ".join(found.summary())}
    tables = {"Where nodes run, and why": (("nodes", "operator", "provider", "why"), found.by_operator())}
    before = given(model, inputs.known_shapes(), inputs.dims)
    return page(before, compiled, f"py-ort placement {model.name}", facts, tables)


def _table(found: Placement, each: bool) -> Table:
    from rich.table import Table

    first = found.providers[0] if found.providers else ""
    table = Table("node" if each else "nodes", "operator", "provider", "why", box=None, header_style="bold")
    if not each:
        table.columns[0].justify = "right"
    for name, kernel, provider, reason in found.by_node() if each else found.by_operator():
        table.add_row(str(name), kernel, provider, reason, style="yellow" if provider != first and reason else "")
    return table

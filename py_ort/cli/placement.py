"""`py-ort placement`: where the nodes of a model run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import browser_options, kernels_option, out, progress, provider_option
from py_ort.cli.inputs import Inputs, input_options

if TYPE_CHECKING:
    from rich.table import Table

    from py_ort import BrowserOptions
    from py_ort.providers import Placement


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@provider_option
@input_options
@kernels_option
@browser_options
@click.option("--nodes", "each", is_flag=True, help="List every node.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.")
def placement(
    model: Path, providers: tuple[str, ...], inputs: Inputs, browser: BrowserOptions, each: bool, as_json: bool
) -> None:
    """Show which node of MODEL runs on which provider, and why."""
    from py_ort import InferenceSession, SessionOptions

    with progress() as report:
        inputs.load(model)
        options = inputs.fix(SessionOptions(), shapes=True)
        with InferenceSession(model, options, list(providers) or None, browser=browser, progress=report) as session:
            found = session.placement()
    if as_json:
        print(json.dumps(found.to_json(), indent=1))
    else:
        out.print(_table(found, each))
        for line in found.summary():
            out.print(line, markup=False, soft_wrap=True)


def _table(found: Placement, each: bool) -> Table:
    from rich.table import Table

    first = found.providers[0] if found.providers else ""
    table = Table("node" if each else "nodes", "operator", "provider", "why", box=None, header_style="bold")
    if not each:
        table.columns[0].justify = "right"
    for name, kernel, provider, reason in found.by_node() if each else found.by_operator():
        table.add_row(str(name), kernel, provider, reason, style="yellow" if provider != first and reason else "")
    return table

"""`py-ort placement`: where the nodes of a model run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import browser_options, progress, provider_option

if TYPE_CHECKING:
    from py_ort import BrowserOptions


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@provider_option
@browser_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.")
def placement(model: Path, providers: tuple[str, ...], browser: BrowserOptions, as_json: bool) -> None:
    """Show which node of MODEL runs on which provider, and why."""
    from py_ort import InferenceSession

    with (
        progress() as report,
        InferenceSession(model, providers=list(providers) or None, browser=browser, progress=report) as session,
    ):
        found = session.placement()
    print(json.dumps(found.to_json(), indent=1) if as_json else found)

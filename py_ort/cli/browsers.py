"""`py-ort browsers`: what is installed, and what it can do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.common import browser_options, out, progress

if TYPE_CHECKING:
    from py_ort import BrowserOptions


@click.command()
@browser_options
@click.option("--probe/--no-probe", default=True, help="Start each browser to see what it has.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.")
def browsers(browser: BrowserOptions, probe: bool, as_json: bool) -> None:
    """List the browsers found; the first of each kind is the one that is used."""
    from py_ort.browser import find

    binaries = (
        [path for family in find.FAMILIES for path in find.installed(family)]
        if browser.browser == "chromium"
        else [find.binary(browser.browser)]
    )
    found: list[dict[str, Any]] = []
    with progress(quiet=not probe) as report:
        for path in binaries:
            entry: dict[str, Any] = {"path": str(path), "version": find.version(path)}
            if probe:
                report(f"starting {path}", 0, 0)
                entry |= _probe(replace(browser, browser=str(path)))
            found.append(entry)
    if as_json:
        print(json.dumps(found, indent=1))
    elif not found:
        find.binary()  # says where was looked and what to do
    else:
        _print(found)


def _probe(options: BrowserOptions) -> dict[str, Any]:
    from py_ort.browser.probe import probe
    from py_ort.exceptions import PyOrtError

    try:
        return probe(options)
    except PyOrtError as e:
        return {"error": f"{type(e).__name__}: {e}"}


def _print(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("browser", "path", "threads", "WebGPU adapter", "features", box=None, header_style="bold")
    for entry in found:
        threads = {True: "yes", False: "no"}.get(entry.get("cross_origin_isolated"), "")  # type: ignore[arg-type]
        adapter = entry.get("adapter") or entry.get("error") or ("" if "adapter" not in entry else "none")
        table.add_row(entry["version"], entry["path"], threads, adapter, ", ".join(entry.get("features", [])))
    out.print(table)

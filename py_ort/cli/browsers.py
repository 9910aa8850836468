"""`py-ort browsers`: the installed browsers and their capabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.advice import in_flags
from py_ort.cli.common import browser_options, json_option, out, progress, write_json

if TYPE_CHECKING:
    from py_ort import BrowserOptions


@click.command(short_help="List browsers and their capabilities.")
@browser_options
@click.option("--probe/--no-probe", default=True, help="Start each browser to find out its capabilities.")
@json_option("the browsers")
@click.pass_context
def browsers(context: click.Context, browser: BrowserOptions, probe: bool, json_file: Path | None) -> None:
    """List the browsers found, or only --browser. Of several of one kind, py-ort uses the first."""
    from py_ort.browser import find

    chosen = context.get_parameter_source("browser") == click.core.ParameterSource.COMMANDLINE
    found = [_named(browser.browser)] if chosen else list(_installed())
    if not found:
        find.binary()  # raises an error with the places searched and advice
    with progress(quiet=not probe) as report:
        for entry in found if probe else ():
            report(f"starting {entry['path']}", 0, 0)
            entry |= _probe(replace(browser, browser=entry["path"]))
            entry["version"] = entry["version"] or entry.get("browser", "")
    if write_json(found, json_file):
        _print(found)
        missing = [family for family in find.FAMILIES if family not in {entry["name"] for entry in found}]
        if missing and not chosen:
            advice = f"py-ort browsers --browser {missing[0]} says where it was looked for, and what helps"
            out.print(f"not found: {', '.join(missing)}; {advice}", soft_wrap=True)


def _named(wanted: str) -> dict[str, Any]:
    from py_ort.browser import find

    if wanted == "capture" or wanted.startswith(("cdp:", "playwright:")):
        return {"name": wanted.partition(":")[0], "path": wanted, "version": "", "also": []}
    path = find.binary(wanted)
    return {"name": find.family(wanted), "path": str(path), "version": find.version(path), "also": []}


def _installed() -> Iterator[dict[str, Any]]:
    """Yield each browser once: commands of one family and version are names of one."""
    from py_ort.browser import find

    for family in find.FAMILIES:
        seen: dict[str, dict[str, Any]] = {}
        for path in find.installed(family):
            version = find.version(path)
            entry = {"name": family, "path": str(path), "version": version, "also": []}
            first = seen.setdefault(version or str(path.resolve()), entry)
            if first is not entry:
                first["also"].append(str(path))
        yield from seen.values()


def _probe(options: BrowserOptions) -> dict[str, Any]:
    from py_ort.exceptions import PyOrtError
    from py_ort.runtime.probe import probe

    try:
        return probe(options, others=True)
    except PyOrtError as e:
        return {"error": f"{type(e).__name__}: {in_flags(str(e))}"}


def _print(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    columns = ("--browser", "version", "path", "threads", "WebGPU adapter", "features", "other devices")
    table = Table(*columns, box=None, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for entry in found:
        threads = {True: "yes", False: "no"}.get(entry.get("cross_origin_isolated"), "")  # type: ignore[arg-type]
        adapter = entry.get("adapter") or entry.get("error") or ("" if "adapter" not in entry else "none")
        features = ", ".join(entry.get("features", []))
        others = ", ".join(_device(*each) for each in entry.get("devices", {}).items())
        table.add_row(entry["name"], entry["version"], entry["path"], threads, adapter, features, others)
    out.print(table)


def _device(provider: str, described: Mapping[str, Any]) -> str:
    if "none" in described:
        return f"{provider}: none"
    operators = sum(isinstance(limits, dict) and "output" in limits for limits in described.get("limits", {}).values())
    return f"{provider}: {described['description']}" + (f", {operators} operators" if operators else "")

"""`py-ort cache`: compiled plans, and measured tiles."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.common import json_option, out, write_json
from py_ort.suggestion import did_you_mean

if TYPE_CHECKING:
    from py_ort.compiler.plan.cache import CacheEntry, CacheRecord, PlanCache
    from py_ort.runtime.tile_tables import TileTable

#: Digits of a key that are shown; fewer may name one, too.
_SHOWN = 12
#: Most characters of a file, and of inputs, in a row.
_FILE, _INPUTS = 44, 32


@click.command(short_help="Show or remove compiled plans.")
@click.option("--clear", is_flag=True, help="Remove all plans, and all tables of tiles.")
@click.option(
    "--remove",
    multiple=True,
    metavar="KEY|MODEL",
    help="Remove the plan with this key, or all plans of a model's file.",
)
@click.option(
    "--top", type=click.IntRange(min=0), default=20, show_default=True, help="Number of plans to print; 0: all."
)
@json_option("all plans")
def cache(clear: bool, remove: tuple[str, ...], top: int, json_file: Path | None) -> None:
    """Show the cache of compiled plans, most recently used first, and the tables of `py-ort tune`; or remove plans.

    Variables: PY_ORT_CACHE_DIR is the cache's folder; PY_ORT_CACHE_MB limits its size (default: 4294), by removing the
    least recently used plans; PY_ORT_CACHE=0 switches the cache off. For one session, the configuration entry
    "session.plan_cache" = "0" does so.
    """
    from py_ort.compiler.plan.cache import PlanCache
    from py_ort.runtime.tile_tables import TileTables

    plans = PlanCache.default()
    if plans is None:
        raise click.ClickException("the plan cache is switched off (PY_ORT_CACHE=0)")
    tables = TileTables(plans.folder)
    listed = [(entry, entry.about()) for entry in plans.entries()]
    gone = [entry for entry, _ in listed] if clear else _chosen(listed, remove)
    if clear:
        plans.clear()
        tables.clear()
    else:
        plans.remove(gone)
    kept = [(entry, about) for entry, about in listed if entry not in gone]
    found = _json(plans, kept, len(gone) if clear or remove else None)
    if not write_json({**found, "tiles": [_tiles(table) for table in tables.entries()]}, json_file):
        return
    if clear or remove:
        freed = sum(entry.size for entry in gone) / 1e6
        out.print(f"{len(gone)} plans removed, {freed:.1f} MB", soft_wrap=True)
    elif kept:
        _print(kept, top)
    held = sum(entry.size for entry, _ in kept) / 1e6
    bound = f"{plans.max_bytes / 1e6:.0f} MB (PY_ORT_CACHE_MB)"
    out.print(f"{len(kept)} plans, {held:.1f} of at most {bound}, in {plans.folder}", soft_wrap=True)
    for table in tables.entries():
        text = f"tiles of {len(table.products)} products, measured on {table.device.name}"
        out.print(text, markup=False, soft_wrap=True)


def _chosen(listed: Sequence[tuple[CacheEntry, CacheRecord]], names: Sequence[str]) -> list[CacheEntry]:
    """Return the plans that are named: each by its key, the first digits of that, or its model's file."""
    found: list[CacheEntry] = []
    for name in names:
        path = os.path.normpath(Path(name).absolute())
        of_model = [entry for entry, about in listed if _file(about) == path]
        by_key = [entry for entry, _ in listed if name and entry.key.startswith(name)]
        if not of_model and len(by_key) > 1:
            raise click.BadParameter(f"{name}: {len(by_key)} plans have such a key", param_hint="--remove")
        if not of_model and not by_key:
            known = [*(_file(about) for _, about in listed), *(entry.key[:_SHOWN] for entry, _ in listed)]
            near = did_you_mean(path, known) or did_you_mean(name, known)
            raise click.BadParameter(f"{name}: no plan has such a key or model{near}", param_hint="--remove")
        found += of_model or by_key
    return found


def _json(plans: PlanCache, kept: Sequence[tuple[CacheEntry, CacheRecord]], removed: int | None) -> dict[str, Any]:
    listed = [
        {
            "key": entry.key,
            "model": about.model,
            "file": about.file,
            "providers": list(about.providers),
            "inputs": {arg.name: arg.dims for arg in about.inputs},
            "bytes": entry.size,
            "used": entry.used,
        }
        for entry, about in kept
    ]
    found = {"folder": str(plans.folder), "max_bytes": plans.max_bytes, "plans": listed}
    return found if removed is None else {**found, "removed": removed}


def _tiles(table: TileTable) -> dict[str, Any]:
    products = {name: asdict(measured) for name, measured in table.products.items()}
    return {"device": asdict(table.device), "products": products}


def _file(about: CacheRecord) -> str:
    """Return the path of a plan's model without "..", or "" if the model came as bytes."""
    return about.file and os.path.normpath(about.file)


def _print(kept: Sequence[tuple[CacheEntry, CacheRecord]], top: int) -> None:
    """Print a line for plans of one model, with the same providers and sizes."""
    from rich.table import Table

    rows: dict[tuple[str, ...], list[CacheEntry]] = {}
    for entry, about in sorted(kept, key=lambda item: -item[0].used):
        file = _file(about) or (f"(bytes: {about.model})" if about.providers else "(damaged)")
        inputs = ", ".join(f"{arg.name} {_shape(arg.dims)}" for arg in about.inputs)
        rows.setdefault((file, ", ".join(about.providers), inputs), []).append(entry)
    table = Table("file", "providers", "inputs", "plans", "MB", "last used", "key", box=None, header_style="bold")
    for column in table.columns[3:6]:
        column.justify = "right"
    shown = list(rows.items())[: top or None]
    for (file, providers, inputs), entries in shown:
        size, age = f"{sum(entry.size for entry in entries) / 1e6:.1f}", _age(time.time() - entries[0].used)
        file = file if len(file) <= _FILE else f"…{file[1 - _FILE :]}"
        inputs = inputs if len(inputs) <= _INPUTS else f"{inputs[: _INPUTS - 1]}…"
        table.add_row(file, providers, inputs, str(len(entries)), size, age, entries[0].key[:_SHOWN])
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[3:]:
        column.min_width = max(map(len, (str(column.header), *map(str, column.cells))))
    out.print(table)
    if rest := list(rows.values())[len(shown) :]:
        out.print(f"… and {sum(map(len, rest))} older plans (--top 0 lists all)")


def _shape(dims: Sequence[int | str | None] | None) -> str:
    return "any shape" if dims is None else "×".join("?" if dim is None else str(dim) for dim in dims) or "number"


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit} ago"
    return "just now" if seconds < 60 else "1 min ago"

"""`py-ort cache`: the plans that were compiled before, and the tiles that were measured."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.common import out
from py_ort.suggestion import did_you_mean

if TYPE_CHECKING:
    from py_ort.compiler.plan.cache import CacheEntry, CacheRecord, PlanCache
    from py_ort.runtime.tile_tables import TileTable

#: Digits of a key that are shown; fewer may name one, too.
_SHOWN = 12


@click.command()
@click.option("--clear", is_flag=True, help="Remove all plans, and all tables of tiles.")
@click.option("--remove", multiple=True, metavar="KEY|MODEL", help="Remove one plan, or those of a model's file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.")
def cache(clear: bool, remove: tuple[str, ...], as_json: bool) -> None:
    """Show the plan cache and what `py-ort tune` measured, or remove plans.

    PY_ORT_CACHE_DIR names its folder, PY_ORT_CACHE_MB bounds it (4294 MB unless it says otherwise; the plans that were
    not used for longest go), PY_ORT_CACHE=0 switches it off; for one session the configuration entry
    "session.plan_cache" = "0" does.
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
    if as_json:
        found = _json(plans, kept, len(gone) if clear or remove else None)
        print(json.dumps({**found, "tiles": [_tiles(table) for table in tables.entries()]}, indent=1))
        return
    if clear or remove:
        freed = sum(entry.size for entry in gone) / 1e6
        out.print(f"{len(gone)} plans removed, {freed:.1f} MB", soft_wrap=True)
    elif kept:
        _print(kept)
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
        path = str(Path(name).absolute())
        of_model = [entry for entry, about in listed if about.file == path]
        by_key = [entry for entry, _ in listed if name and entry.key.startswith(name)]
        if not of_model and len(by_key) > 1:
            raise click.BadParameter(f"{name}: {len(by_key)} plans have such a key", param_hint="--remove")
        if not of_model and not by_key:
            known = [*(about.file for _, about in listed), *(entry.key[:_SHOWN] for entry, _ in listed)]
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


def _print(kept: Sequence[tuple[CacheEntry, CacheRecord]]) -> None:
    from rich.table import Table

    table = Table("file", "providers", "inputs", "MB", "last used", "key", box=None, header_style="bold")
    table.columns[0].overflow = table.columns[2].overflow = "fold"
    table.columns[3].justify = table.columns[4].justify = "right"
    for entry, about in kept:
        inputs = ", ".join(f"{arg.name} {_shape(arg.dims)}" for arg in about.inputs)
        file = about.file or (f"(bytes: {about.model})" if about.providers else "(damaged)")
        size, age = f"{entry.size / 1e6:.1f}", _age(time.time() - entry.used)
        table.add_row(file, ", ".join(about.providers), inputs, size, age, entry.key[:_SHOWN])
    out.print(table)


def _shape(dims: Sequence[int | str | None] | None) -> str:
    return "any shape" if dims is None else "×".join("?" if dim is None else str(dim) for dim in dims) or "number"


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit} ago"
    return "just now" if seconds < 60 else "1 min ago"

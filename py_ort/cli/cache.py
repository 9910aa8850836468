"""`py-ort cache`: the plans that were compiled before."""

from __future__ import annotations

import json
from datetime import datetime

import click
from rich.table import Table

from py_ort.cli.common import out


@click.command()
@click.option("--clear", is_flag=True, help="Remove all plans.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.")
def cache(clear: bool, as_json: bool) -> None:
    """Show the plan cache, or clear it.

    PY_ORT_CACHE_DIR names its folder, PY_ORT_CACHE_MB bounds it, PY_ORT_CACHE=0 switches it off; for one session the
    configuration entry "session.plan_cache" = "0" does.
    """
    from py_ort.plan.cache import PlanCache

    plans = PlanCache.default()
    if plans is None:
        raise click.ClickException("the plan cache is switched off (PY_ORT_CACHE=0)")
    removed = plans.clear() if clear else None
    entries = plans.entries()
    if as_json:
        listed = [{"key": e.key, "model": e.model_name(), "bytes": e.size, "used": e.used} for e in entries]
        about = {"folder": str(plans.folder), "max_bytes": plans.max_bytes, "plans": listed}
        print(json.dumps(about if removed is None else {**about, "removed": removed}, indent=1))
        return
    if removed is not None:
        out.print(f"{removed} plans removed from {plans.folder}", soft_wrap=True)
        return
    if entries:
        table = Table("model", "MB", "last used", "key", box=None)
        for entry in entries:
            used = datetime.fromtimestamp(entry.used).strftime("%Y-%m-%d %H:%M")
            table.add_row(entry.model_name(), f"{entry.size / 1e6:.1f}", used, entry.key[:12])
        out.print(table)
    held = sum(entry.size for entry in entries) / 1e6
    out.print(f"{len(entries)} plans, {held:.1f} of {plans.max_bytes / 1e6:.0f} MB in {plans.folder}", soft_wrap=True)

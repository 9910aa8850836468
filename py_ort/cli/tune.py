"""`py-ort tune`: measures the fastest tiles of a model's products on this GPU, and stores them."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.cli.common import (
    browser_options,
    err,
    json_option,
    kernels_option,
    out,
    progress,
    runs_option,
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options, told_how_to_give
from py_ort.providers import webgpu

if TYPE_CHECKING:
    from py_ort import BrowserOptions, InferenceSession
    from py_ort.runtime.tile_tuning import Tuning


@click.command(short_help="Measure the fastest tiles on this GPU.")
@click.argument("model", type=click.Path(path_type=Path))
@runs_option(10, "Runs to measure with each table of tiles, after two to warm up.")
@click.option(
    "--subgroup-matrix", is_flag=True, help="Also measure tiles of subgroup matrices, an experimental feature of GPUs."
)
@input_options
@kernels_option
@json_option("the products")
@browser_options
def tune(
    model: Path,
    runs: int,
    subgroup_matrix: bool,
    inputs: Inputs,
    json_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Measure the fastest tiles of MODEL's products and convolutions on this GPU, and store them.

    Sessions on the same adapter in the same browser use these tiles for products of these sizes in any model. The
    configuration entry "session.tiles" = "0" switches that off. `py-ort cache` lists the tables.
    """
    from py_ort.runtime.tile_tables import TileTables

    tables = TileTables.default()
    if tables is None:
        raise click.ClickException("there is nowhere to keep it: the plan cache is switched off (PY_ORT_CACHE=0)")
    try:
        tables.prepare()  # before minutes of measuring
    except OSError as e:
        raise click.ClickException(
            f"nothing can be kept in {tables.folder} ({e.strerror}): name another folder by PY_ORT_CACHE_DIR"
        ) from None
    with progress() as report:
        tuning = _measure(model, runs, {"subgroupMatrix": subgroup_matrix}, inputs, browser, report)
    device = tuning.device
    tables.add(device, tuning.products)
    result = {
        "model": str(model),
        "device": asdict(device),
        "runs": runs,
        "products": {name: asdict(measured) for name, measured in tuning.products.items()},
        "refused": tuning.refused,
    }
    if write_json(result, json_file):
        _print(tuning)
        changed = sum(measured.tile != measured.usual for measured in tuning.products.values())
        out.print(
            f"{changed} of {len(tuning.products)} products have another tile than before; kept for {device.name}",
            markup=False,
            soft_wrap=True,
        )
    for tile in tuning.refused:
        err.print(f"note: with the tile {tile} results are others: it is left out", markup=False, soft_wrap=True)


def _measure(
    model: Path, runs: int, device: Mapping[str, Any], inputs: Inputs, browser: BrowserOptions, report: Any
) -> Tuning:
    from py_ort import InferenceSession, SessionOptions
    from py_ort.runtime.tile_tables import ENTRY
    from py_ort.runtime.tile_tuning import measure_tiles

    described = inputs.describe(model)
    with tempfile.TemporaryDirectory() as folder:
        numbers = itertools.count()

        def open_session(tiles: Mapping[str, str], told: Any = None) -> InferenceSession:
            file = Path(folder, f"tiles_{next(numbers)}.json")
            file.write_text(json.dumps(tiles), encoding="utf-8")
            options = inputs.fix(SessionOptions())
            options.enable_profiling, options.profile_file_prefix = True, str(Path(folder, "profile"))
            options.add_session_config_entry(ENTRY, str(file))
            options.add_session_config_entry("session.require_providers", "1")
            return InferenceSession(model, options, [(webgpu.PROVIDER.name, device)], browser=browser, progress=told)

        with open_session({}, report) as session:
            feeds = inputs.feeds(session.get_inputs(), described)
            with told_how_to_give(session.get_inputs(), feeds, inputs.files):
                return measure_tiles(session, open_session, feeds, runs, report)


def _print(tuning: Tuning) -> None:
    from rich.table import Table

    table = Table("product", "tile", "ms", "before", "ms", "ratio", box=None, header_style="bold")
    table.columns[0].overflow = "fold"
    for i in (2, 4, 5):
        table.columns[i].justify = "right"
    for name, one in sorted(tuning.products.items(), key=lambda item: -item[1].usual_ms):
        ratio = one.ms / one.usual_ms if one.usual_ms else 1
        table.add_row(name, one.tile, f"{one.ms:.4f}", one.usual, f"{one.usual_ms:.4f}", f"{ratio:.2f}")
    out.print(table)

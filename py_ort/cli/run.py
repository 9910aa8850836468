"""`py-ort run`: one run of a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from py_ort.cli.common import Report, browser_options, err, kernels_option, out, progress, provider_option, runs_option
from py_ort.cli.inputs import Inputs, input_options, told_how_to_give

if TYPE_CHECKING:
    from py_ort import BrowserOptions, InferenceSession, NodeArg
    from py_ort.testing.model_inputs import ModelInputs


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@input_options
@click.option("--random", "use_random", is_flag=True, help="Feed random numbers to inputs without a file or shape.")
@provider_option
@kernels_option
@browser_options
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="D", help="Write each output there as .npy.")
@runs_option(1, "Run so many times; times are those of the first and last.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
def run(
    model: Path,
    inputs: Inputs,
    use_random: bool,
    providers: tuple[str, ...],
    browser: BrowserOptions,
    output_dir: Path | None,
    runs: int,
    as_json: bool,
) -> None:
    """Run MODEL once in a browser and show its outputs."""
    from py_ort import InferenceSession, SessionOptions

    with progress() as report:
        described = inputs.describe(model)
        options = inputs.fix(SessionOptions())
        with InferenceSession(model, options, list(providers) or None, browser=browser, progress=report) as session:
            result = _run(session, described, inputs, use_random, output_dir, runs, report)
    result = {"model": str(model), **result}
    if as_json:
        json.dump(result, sys.stdout, indent=1)
        print()
    else:
        _print(result)


def _run(
    session: InferenceSession,
    model: ModelInputs,
    inputs: Inputs,
    use_random: bool,
    output_dir: Path | None,
    runs: int,
    report: Report,
) -> dict[str, Any]:
    args = session.get_inputs()
    feeds = inputs.feeds(args, model, lambda arg: use_random, image_size=(64, 64))
    for name, array in feeds.items():
        if name not in inputs.files:
            err.print(f"{name}: random {array.dtype} {list(array.shape)}")
    with told_how_to_give(args, feeds, inputs.files):
        for number in range(runs):
            report("running", number, runs if runs > 1 else 0)
            results = session.run(None, feeds)
    outputs = [_describe(arg, array, output_dir) for arg, array in zip(session.get_outputs(), results, strict=True)]
    stats = session.stats()
    return {
        "providers": session.get_providers(),
        "nodes": session.placement().counts(),
        "left_out": dict(session.placement().left_out),
        "browser": session.browser,
        "adapter": session.adapter,
        "create_ms": stats["create_ms"],
        "first_run_ms": stats["first_run_ms"],
        "last_run_ms": stats["last_run"]["total_ms"],
        "outputs": outputs,
    }


def _describe(arg: NodeArg, array: Any, folder: Path | None) -> dict[str, Any]:
    description: dict[str, Any] = {"name": arg.name, "dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size and array.dtype.kind in "iufb":
        numbers = array.astype(np.float64)
        description |= {"min": float(numbers.min()), "max": float(numbers.max()), "mean": float(numbers.mean())}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in arg.name)
        description["file"] = str(folder / f"{safe}.npy")
        np.save(description["file"], array)
    return description


def _print(result: dict[str, Any]) -> None:
    from rich.table import Table

    nodes = ", ".join(f"{count} on {provider}" for provider, count in result["nodes"].items())
    out.print(f"[bold]{result['model']}[/]  nodes: {nodes}", soft_wrap=True)
    for name, reason in result["left_out"].items():
        out.print(f"{name} is left out: {reason}", markup=False, soft_wrap=True)
    where = " / ".join(text for text in (result["browser"], result["adapter"]) if text)
    out.print(where, soft_wrap=True)
    times = ", ".join(f"{name} {result[name + '_ms']:.0f} ms" for name in ("create", "first_run", "last_run"))
    out.print(times.replace("_", " "))
    table = Table("output", "dtype", "shape", "min", "mean", "max", "file", box=None, header_style="bold")
    for item in result["outputs"]:
        numbers = [f"{item[key]:.6g}" if key in item else "" for key in ("min", "mean", "max")]
        table.add_row(item["name"], item["dtype"], str(item["shape"]), *numbers, item.get("file", ""))
    out.print(table)

"""`py-ort run`: one run of a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from py_ort.cli.common import browser_options, err, kernels_option, out, progress, provider_option

if TYPE_CHECKING:
    from py_ort import BrowserOptions, InferenceSession, NodeArg


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="A feed; repeat it for each input.")
@click.option("--random", "use_random", is_flag=True, help="Feed random numbers to inputs without a file.")
@provider_option
@kernels_option
@browser_options
@click.option("--output-dir", type=click.Path(path_type=Path), metavar="D", help="Write each output there as .npy.")
@click.option("--runs", default=1, show_default=True, help="Run so many times; times are those of the first and last.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else.")
def run(
    model: Path,
    inputs: tuple[str, ...],
    use_random: bool,
    providers: tuple[str, ...],
    browser: BrowserOptions,
    output_dir: Path | None,
    runs: int,
    as_json: bool,
) -> None:
    """Run MODEL once in a browser and show its outputs."""
    from py_ort import InferenceSession

    with (
        progress() as report,
        InferenceSession(model, providers=list(providers) or None, browser=browser, progress=report) as session,
    ):
        feeds = _feeds(session, inputs, use_random)
        for number in range(max(runs, 1)):
            report("running", number, runs if runs > 1 else 0)
            results = session.run(None, feeds)
        outputs = [_describe(arg, array, output_dir) for arg, array in zip(session.get_outputs(), results, strict=True)]
        stats = session.stats()
        result = {
            "model": str(model),
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
    if as_json:
        json.dump(result, sys.stdout, indent=1)
        print()
    else:
        _print(result)


def _feeds(session: InferenceSession, inputs: tuple[str, ...], use_random: bool) -> dict[str, np.ndarray]:
    feeds = {}
    for item in inputs:
        name, equals, file = item.partition("=")
        if not equals:
            raise click.BadParameter(f"expected NAME=FILE.npy, got {item!r}", param_hint="--input")
        try:
            feeds[name] = np.load(file)
        except (OSError, ValueError) as e:
            raise click.BadParameter(f"{file}: {e}", param_hint="--input") from e
    if use_random:
        from py_ort.testing.random_feeds import random_feeds

        missing = [arg for arg in session.get_inputs() if arg.name not in feeds]
        for name, array in random_feeds(missing, image_size=(64, 64)).items():
            feeds[name] = array
            err.print(f"{name}: random {array.dtype} {list(array.shape)}")
    return feeds


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

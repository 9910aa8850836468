"""`py-ort compare`: every value of a model against native onnxruntime, or against another provider."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import (
    OutputFile,
    browser_options,
    each_provider_option,
    engine_option,
    json_option,
    kernels_option,
    out,
    progress,
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options
from py_ort.exceptions import NotImplemented

if TYPE_CHECKING:
    from py_ort import BrowserOptions
    from py_ort.testing.compare import Comparison

#: Values of the largest errors that are shown.
_LARGEST = 10


@click.command(short_help="Find the first value that differs.")
@click.argument("model", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@each_provider_option
@engine_option
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="Largest error that passes, relative to the value's largest number.",
)
@click.option("--steps", type=click.IntRange(min=0), default=0, help="Largest difference that passes for integers.")
@input_options
@kernels_option
@json_option("all values")
@click.option(
    "--html", "html_file", type=OutputFile(), metavar="FILE", help="Write an HTML page with the errors and the graph."
)
@browser_options
def compare(
    model: Path,
    providers: tuple[str, ...],
    engines: tuple[str, ...],
    tolerance: float | None,
    steps: int,
    inputs: Inputs,
    json_file: Path | None,
    html_file: Path | None,
    browser: BrowserOptions,
) -> None:
    """Compare every intermediate value of MODEL: show the first that differs, and the largest errors.

    One --provider (default: webgpu) is compared with native onnxruntime; two are compared with each other; --engine
    likewise. Kernels of --kernels are compared with their reference=. Inputs without a file are random. The status is 1
    if something differs.
    """
    from py_ort.providers import DEFAULT, canonical_provider
    from py_ort.runtime.engines import OURS
    from py_ort.testing import compare as comparing
    from py_ort.testing.native_model import NativeModel

    pairs = dict.fromkeys(product(map(canonical_provider, providers or DEFAULT[:1]), engines or (OURS,)))
    if len(pairs) > 2:
        raise click.UsageError("give one --provider or two, or one --engine or two")
    tested, *others = (comparing.InBrowser(provider, engine, {"browser": browser}) for provider, engine in pairs)
    reference = others[0] if others else comparing.Native()
    with progress() as report:
        report("reading the model", 0, 0)
        feeds = inputs.accepted_feeds(model, NativeModel(model))
        report("running it as it is", 0, 0)
        try:
            found = comparing.compare(
                model,
                feeds,
                tested,
                reference,
                tolerance=tolerance,
                steps=steps,
                progress=lambda done, total, detail: report("comparing values", done, total, detail),
            )
        except NotImplemented as e:  # only the reference raises it
            if not others:
                e.message += "; two --provider or two --engine are compared without it"
            raise
    if found.refusal:
        raise found.refusal
    if html_file:
        from py_ort.testing.compare_page import page

        html_file.write_text(page(model, found, tested.name, reference.name, browser.name), encoding="utf-8")
    sides = {"model": str(model), "tested": tested.name, "reference": reference.name}
    if write_json({**sides, **found.as_dict()}, json_file):
        _print(found, tested.name, reference.name)
    sys.exit(not found.ok)


def _print(found: Comparison, tested: str, reference: str) -> None:
    from rich.table import Table

    def say(text: str) -> None:
        out.print(text, markup=False, soft_wrap=True)

    wrong = [value for value in found.values if value.wrong]
    say(f"{len(found.values)} values on {tested} against {reference}: {len(wrong)} differ")
    for name, text in found.outputs.items():
        say(f"output {name!r}: {text}")
    if found.outputs and found.fused is not None:
        say("only outputs differ where all values are looked at, which keeps nodes from being fused. Alone, and fused:")
    if (first := found.first) is not None:
        say(f"first: {first}")
        for value in wrong:
            if value.origin and value is not first:
                say(f"also, with inputs that agree: {value.name!r} of {value.op_type} {value.node!r}")
    table = Table("largest error", "value", "operator", "node", "dtype", "shape", box=None, header_style="bold")
    for value in sorted(found.values, key=lambda v: -(v.part or 0))[:_LARGEST]:
        if value.part:
            shape = "" if value.shape is None else "x".join(map(str, value.shape))
            table.add_row(f"{value.part:.1e}", value.name, value.op_type, value.node, value.dtype or "", shape)
    if table.row_count:
        out.print(table)

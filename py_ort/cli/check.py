"""`py-ort check`: will it run? No browser is needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.advice import in_flags
from py_ort.cli.common import OutputFile, json_option, kernels_option, out, progress, provider_option, write_json
from py_ort.cli.inputs import Inputs, input_options

if TYPE_CHECKING:
    from rich.table import Table

    from py_ort.compiler.model_report import ModelReport, OperatorReport

#: Bytes that every WebGPU device takes in one binding.
_BOUND = 128 << 20
#: Nodes that are named in a row.
_NAMED = 4
#: Most characters of a size.
_FORMULA = 40
#: Facts that a page's row of a model has.
_SIZES = ("open", "weights", "memory", "caution")
_WORDS = {
    "other provider": "on another provider",
    "function": "its parts run",
    "rewritten": "other operators run",
    "missing": "no kernel",
}


@click.command(short_help="Say whether MODELs will run.")
@click.argument(
    "models", metavar="MODEL...", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@provider_option
@click.option(
    "--no-fallback", is_flag=True, help="Count a model as failing if the first provider has no kernel for a node."
)
@input_options
@kernels_option
@click.option("--all", "every", is_flag=True, help="List all operators, also those without remarks.")
@json_option("the result")
@click.option(
    "--html", "html_file", type=OutputFile(), metavar="FILE", help="Write an HTML page: all models in one table."
)
def check(
    models: tuple[Path, ...],
    providers: tuple[str, ...],
    no_fallback: bool,
    inputs: Inputs,
    every: bool,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Say whether MODELs will run: operators that providers lack and their substitutes, types, sizes and memory.

    The status is 1 if a model will not run. `py-ort browsers` lists the providers and the memory of browsers.
    """
    with progress(quiet=not sys.stderr.isatty()) as report:
        from py_ort.compiler import CompileOptions
        from py_ort.compiler.model_report import model_report
        from py_ort.providers import with_cpu
        from py_ort.providers.resolution import resolve

        names = with_cpu(*resolve(list(providers) or None).providers)
        named = _inputs(models, inputs) if inputs else {}
        reports: dict[Path, ModelReport] = {}
        for number, model in enumerate(models):
            report("compiling", number, len(models) if len(models) > 1 else 0, model.name)
            shapes = {name: shape for name, shape in inputs.known_shapes().items() if name in named.get(model, ())}
            options = CompileOptions(
                free_dimension_overrides=inputs.dims, input_shapes=shapes, disable_cpu_fallback=no_fallback
            )
            reports[model] = model_report(model, names, options)
    if html_file:
        html_file.write_text(_page(reports, names), encoding="utf-8")
    told = [{"model": str(model), **found.as_dict()} for model, found in reports.items()]
    if write_json(told[0] if len(told) == 1 else {"models": told}, json_file):
        for model, found in reports.items():
            _print(model, found, every)
    sys.exit(not all(found.runs for found in reports.values()))


def _inputs(models: Sequence[Path], inputs: Inputs) -> dict[Path, set[str]]:
    """Return the names of each model's inputs; check that some model has each named input."""
    from py_ort.compiler import NodeArg
    from py_ort.compiler.load import load_model
    from py_ort.exceptions import PyOrtError

    found: dict[Path, list[NodeArg]] = {}
    for model in models:
        try:
            found[model] = [NodeArg.of(value) for value in load_model(model).model.graph.inputs]
        except PyOrtError:
            if len(models) == 1:
                raise
    inputs.check(arg for args in found.values() for arg in args)
    return {model: {arg.name for arg in args} for model, args in found.items()}


def _page(reports: dict[Path, ModelReport], providers: list[str]) -> str:
    """Return a page with a row for each model, and for each operator that needs a remark."""
    from py_ort.pages.template import render

    columns = ("model", "what", "nodes", "operator", "why", "which nodes")
    rows: list[tuple[bool, tuple[str, ...]]] = []
    for model, found in reports.items():
        told = "; ".join(f"{name}: {text}" for name, text in _facts(model, found) if name in _SIZES)
        rows.append((not found.runs, (model.name, _said(found), str(sum(found.counts.values()) or ""), "", told, "")))
        for each in found.operators:
            if each.standing in _WORDS:
                count, operator, what, why, named = _cells(each)
                rows.append((each.standing == "missing", (model.name, what, count, operator, why, named)))
    run = sum(found.runs for found in reports.values())
    facts = {"result": f"{run} of {len(reports)} models will run", "providers": ", ".join(providers)}
    texts = [name for name in columns if name != "nodes"]
    title = f"py-ort check {', '.join(model.name for model in reports)}"
    return render("check", title, facts=facts, notes=[], columns=columns, texts=texts, table=rows)


def _said(found: ModelReport) -> str:
    on = ", ".join(name for name, count in found.counts.items() if count)
    return f"it will not run: {in_flags(found.error)}" if found.error else f"it will run{f' on {on}' if on else ''}"


def _print(model: Path, found: ModelReport, every: bool) -> None:
    for name, text in _facts(model, found):
        out.print(f"{name:<10} {text}", markup=False, soft_wrap=True)
    shown = [each for each in found.operators if every or each.standing in _WORDS]
    if shown:
        out.print(_table(shown))
    out.print(_said(found), markup=False, soft_wrap=True, style="red" if found.error else "green")


def _facts(model: Path, found: ModelReport) -> list[tuple[str, str]]:
    facts = [("model", str(model))]
    if found.opsets:
        opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
        facts.append(("opsets", f"{opsets} (of ai.onnx, up to {found.newest_opset} are known)"))
    for kind, args in (("input", found.inputs), ("output", found.outputs)):
        for arg in args:
            shape = "any shape" if arg.dims is None else f"[{', '.join(map(_size, arg.dims))}]"
            facts.append((kind, f"{arg.name} {arg.type} {shape}"))
    if not found.counts:
        return facts
    nodes = ", ".join(f"{count} on {provider}" for provider, count in found.counts.items())
    facts.append(("nodes", f"{nodes}, after optimization"))
    if found.open_values:
        open_names = {str(d): None for dims in found.open_dimensions.values() for d in dims if isinstance(d, str)}
        ways = " ".join(f"--dim {name}=NUMBER" for name in list(open_names)[:_NAMED])
        give = f"; fix more with {ways}" if open_names else ""
        facts.append(("open", f"the sizes of {found.open_values} values are unknown before a run{give}"))
    weights = ", ".join(f"{_megabytes(found.weights[p])} on {p}" for p in found.providers if found.weights[p])
    facts.append(("weights", f"{_megabytes(found.weights['all'])}{f': {weights}' if weights else ''}"))
    if found.tensor_bytes is None:
        facts.append(("memory", "of a run depends on sizes: give --dim or --shape"))
    else:
        facts.append(("memory", f"a run's tensors take at least {_megabytes(found.tensor_bytes)} at one time"))
    if found.runs and (largest := found.largest) and largest.bytes > _BOUND and found.on_devices:
        facts.append(
            (
                "caution",
                f"{largest} takes {_megabytes(largest.bytes)}; every WebGPU device binds {_megabytes(_BOUND)}, "
                "what a GPU here takes is in `py-ort browsers --json -`",
            )
        )
    return facts


def _size(dim: int | str | None) -> str:
    """Return a size; a long formula of sizes is "…"."""
    text = "?" if dim is None else str(dim)
    return text if len(text) <= _FORMULA else "…"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes"


def _table(rows: list[OperatorReport]) -> Table:
    from rich.table import Table

    table = Table("nodes", "operator", "what runs", "why", "which nodes", box=None, header_style="bold")
    table.columns[0].justify = "right"
    for row in rows:
        table.add_row(*_cells(row), style="red" if row.standing == "missing" else "")
    return table


def _cells(row: OperatorReport) -> tuple[str, str, str, str, str]:
    kernels = ", ".join(f"{kernel} on {provider}" for provider, kernel in row.becomes)
    what = ": ".join(filter(None, (_WORDS.get(row.standing, row.standing), kernels)))
    why = "; ".join(
        dict.fromkeys(f"{who}: {why}" if row.standing == "missing" and who else why for who, why in row.reasons)
    )
    if row.inputs:
        why += f" (inputs {', '.join(row.inputs)})"
    named = ", ".join(row.nodes[:_NAMED]) + (f", {len(row.nodes) - _NAMED} more" if len(row.nodes) > _NAMED else "")
    full = f"{row.domain}::{row.op_type}" if row.domain else row.op_type
    return str(len(row.nodes)), full, what, why, named

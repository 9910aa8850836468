"""`py-ort check`: will it run? No browser is needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.advice import in_flags
from py_ort.cli.common import kernels_option, out, progress, provider_option
from py_ort.cli.inputs import Inputs, input_options

if TYPE_CHECKING:
    from rich.table import Table

    from py_ort.compiler.verdict import OperatorVerdict, Verdict

#: Bytes that every WebGPU device takes in one binding.
_BOUND = 128 << 20
#: Nodes that are named in a row.
_NAMED = 4
_WORDS = {
    "other provider": "on another provider",
    "function": "its parts run",
    "rewritten": "other operators run",
    "missing": "no kernel",
}


@click.command()
@click.argument("model", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@provider_option
@click.option("--no-fallback", is_flag=True, help="It will not run if the first provider lacks a node.")
@input_options
@kernels_option
@click.option("--all", "every", is_flag=True, help="List all operators, those that just run among them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.")
def check(
    model: Path, providers: tuple[str, ...], no_fallback: bool, inputs: Inputs, every: bool, as_json: bool
) -> None:
    """Say whether MODEL will run: which operators the providers lack and what stands in, types, sizes and memory.

    The status is 1 if it will not run. Whether a browser has the providers, and the memory, `py-ort browsers` tells.
    """
    with progress(quiet=not sys.stderr.isatty()) as report:
        report("compiling", 0, 0)
        from py_ort.compiler import CompileOptions
        from py_ort.compiler.verdict import verdict
        from py_ort.providers import with_cpu
        from py_ort.providers.resolution import resolve

        if inputs:
            inputs.load(model)
        names = with_cpu(*resolve(list(providers) or None).providers)
        options = CompileOptions(
            free_dimension_overrides=inputs.dims, input_shapes=inputs.known_shapes(), disable_cpu_fallback=no_fallback
        )
        found = verdict(model, names, options)
    if as_json:
        print(json.dumps({"model": str(model), **found.as_dict()}, indent=1))
    else:
        _print(model, found, every)
    sys.exit(not found.runs)


def _print(model: Path, found: Verdict, every: bool) -> None:
    for name, text in _facts(model, found):
        out.print(f"{name:<10} {text}", markup=False, soft_wrap=True)
    shown = [each for each in found.operators if every or each.standing in _WORDS]
    if shown:
        out.print(_table(shown))
    on = (
        " on ".join(["", ", ".join(name for name, count in found.counts.items() if count)])
        if any(found.counts.values())
        else ""
    )
    text = f"it will not run: {in_flags(found.error)}" if found.error else f"it will run{on}"
    out.print(text, markup=False, soft_wrap=True, style="red" if found.error else "green")


def _facts(model: Path, found: Verdict) -> list[tuple[str, str]]:
    facts = [("model", str(model))]
    if found.opsets:
        opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
        facts.append(("opsets", f"{opsets} (of ai.onnx, up to {found.newest_opset} are known)"))
    for kind, args in (("input", found.inputs), ("output", found.outputs)):
        for arg in args:
            shape = (
                "any shape" if arg.dims is None else f"[{', '.join('?' if d is None else str(d) for d in arg.dims)}]"
            )
            facts.append((kind, f"{arg.name} {arg.type} {shape}"))
    if not found.counts:
        return facts
    nodes = ", ".join(f"{count} on {provider}" for provider, count in found.counts.items())
    facts.append(("nodes", f"{nodes}, after optimization"))
    if found.open_values:
        open_names = {str(d): None for dims in found.open_dimensions.values() for d in dims if isinstance(d, str)}
        give = f": --dim {next(iter(open_names))}=NUMBER settles more" if open_names else ""
        facts.append(("open", f"{found.open_values} values have sizes that only a run tells{give}"))
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
                "what a GPU here takes is in `py-ort browsers --json`",
            )
        )
    return facts


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes"


def _table(rows: list[OperatorVerdict]) -> Table:
    from rich.table import Table

    table = Table("nodes", "operator", "what runs", "why", "which nodes", box=None, header_style="bold")
    table.columns[0].justify = "right"
    for row in rows:
        kernels = ", ".join(f"{kernel} on {provider}" for provider, kernel in row.becomes)
        what = ": ".join(filter(None, (_WORDS.get(row.standing, row.standing), kernels)))
        why = "; ".join(
            dict.fromkeys(f"{who}: {why}" if row.standing == "missing" and who else why for who, why in row.reasons)
        )
        if row.inputs:
            why += f" (inputs {', '.join(row.inputs)})"
        named = ", ".join(row.nodes[:_NAMED]) + (f", {len(row.nodes) - _NAMED} more" if len(row.nodes) > _NAMED else "")
        full = f"{row.domain}::{row.op_type}" if row.domain else row.op_type
        table.add_row(str(len(row.nodes)), full, what, why, named, style="red" if row.standing == "missing" else "")
    return table

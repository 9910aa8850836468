"""`py-ort passes`: the changes of each compiler pass to a model. No browser is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from py_ort.cli.common import OutputFile, err, json_option, kernels_option, out, provider_option, write_json
from py_ort.cli.inputs import Inputs, input_options
from py_ort.schema.dialect import INTERNAL_DOMAIN

if TYPE_CHECKING:
    from py_ort.compiler import CompiledModel
    from py_ort.compiler.passes import PassReport

_LEVELS = ("disabled", "basic", "extended", "layout", "all")


@click.command(short_help="Show the changes of each compiler pass.")
@click.argument("model", type=click.Path(path_type=Path))
@provider_option
@click.option("--level", type=click.Choice(_LEVELS), default="all", show_default=True, help="Optimization level.")
@input_options
@kernels_option
@click.option("--save", type=OutputFile(), metavar="FILE", help="Write the optimized graph as ONNX.")
@json_option("the passes")
@click.option("--html", "html_file", type=OutputFile(), metavar="FILE", help="Write an HTML page that draws the graph.")
def passes(
    model: Path,
    providers: tuple[str, ...],
    level: str,
    inputs: Inputs,
    save: Path | None,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Show what each pass changes in MODEL: nodes before and after, and the time it takes."""
    with err.status("compiling") if err.is_terminal else _Quiet():
        from py_ort.compiler import CompileOptions, compile_model
        from py_ort.compiler.saved.target import SavedModel
        from py_ort.providers import with_cpu
        from py_ort.providers.resolution import resolve

        names = with_cpu(*resolve(list(providers) or None).providers)
        options = CompileOptions(level, inputs.dims, input_shapes=inputs.known_shapes())
        saved = SavedModel(save) if save else None
        compiled = compile_model(inputs.load(model), providers=names, options=options, optimized=saved)
    if html_file:
        html_file.write_text(_page(model, compiled, inputs), encoding="utf-8")
    if write_json(_json(compiled), json_file):
        _print(compiled)


class _Quiet:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _json(compiled: CompiledModel) -> dict[str, Any]:
    return {
        "passes": [
            {
                "name": p.name,
                "changes": p.changes,
                "before": p.before,
                "after": p.after,
                "operators": dict(p.operators),
                "constants": p.constants,
                "touched": list(p.touched),
                "ms": round(p.ms, 3),
            }
            for p in compiled.passes
        ],
        "timings": {stage: round(ms, 3) for stage, ms in compiled.timings.items()},
        "launches": compiled.placement.launches(),
        "nodes": compiled.placement.counts(),
        "shape_arithmetic": compiled.placement.arithmetic(),
    }


def _page(model: Path, compiled: CompiledModel, inputs: Inputs) -> str:
    from py_ort.pages.graph import given, page

    facts = {"model": model, **dict(_sums(compiled))}
    changing = [each for each in compiled.passes if each.changes]
    rows = [(each.name, each.before, each.after, each.changes, round(each.ms, 1), _made(each)) for each in changing]
    tables = {
        "Passes that changed something": (("pass", "nodes before", "after", "changes", "ms", "more and fewer"), rows)
    }
    touched = [each.touched for each in changing]
    before = given(model, inputs.known_shapes(), inputs.dims)
    return page(before, compiled, f"py-ort passes {model.name}", facts, tables, touched)


def _print(compiled: CompiledModel) -> None:
    table = Table("pass", "nodes", "changes", "ms", "more and fewer", box=None)
    for column in table.columns[1:4]:
        column.justify = "right"
    table.columns[4].overflow = "fold"
    for each in compiled.passes:
        changed = str(each.changes) if each.changes else "no change"
        nodes = f"{each.before} → {each.after}" if each.before != each.after else str(each.after)
        table.add_row(each.name, nodes, changed, f"{each.ms:.1f}", _made(each), style="" if each.changes else "dim")
    out.print(table)
    out.print()
    for name, text in _sums(compiled):
        out.print(f"{name}: {text}", soft_wrap=True)


def _sums(compiled: CompiledModel) -> list[tuple[str, str]]:
    """Return the sums: nodes, kernels to launch, milliseconds."""
    reports = compiled.passes
    changing = sum(report.changes > 0 for report in reports)
    stages = ", ".join(f"{stage} {ms:.0f}" for stage, ms in compiled.timings.items())
    launches = ", ".join(f"{count} on {provider}" for provider, count in compiled.placement.launches().items())
    ends = f"{reports[0].before} → {reports[-1].after}"
    return [
        ("nodes", f"{ends}; {changing} of {len(reports)} passes changed something"),
        ("kernels to launch", f"{launches}; shape arithmetic: {compiled.placement.arithmetic()} nodes"),
        ("ms per stage", f"{stages}; together {sum(compiled.timings.values()):.0f}"),
    ]


def _made(report: PassReport) -> str:
    """Return the operators that are gone, then the new ones: "-24 Clip -24 Div +24 HardSwish"."""
    signed = sorted(report.operators.items(), key=lambda item: (item[1] > 0, -abs(item[1]), item[0]))
    if report.constants:
        signed.append(("constant" if abs(report.constants) == 1 else "constants", report.constants))
    return " ".join(f"{count:+d} {name.removeprefix(f'{INTERNAL_DOMAIN}.')}" for name, count in signed)

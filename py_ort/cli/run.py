"""`py-ort run`: one run of a model."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from py_ort.cli.advice import in_flags
from py_ort.cli.common import (
    Report,
    browsers_options,
    each_provider_option,
    engine_option,
    err,
    json_option,
    kernels_option,
    out,
    progress,
    runs_option,
    write_json,
)
from py_ort.cli.inputs import Inputs, input_options, told_how_to_give
from py_ort.exceptions import PyOrtError

if TYPE_CHECKING:
    from rich.table import Table

    from py_ort import BrowserOptions, InferenceSession, NodeArg
    from py_ort.testing.model_inputs import ModelInputs


#: Times of a run, and their headings; the browser may have been running already.
_TIMES = {"browser_ms": "browser", "create_ms": "create", "first_run_ms": "first run", "last_run_ms": "last run"}


@click.command(short_help="Run MODEL once and show its outputs.")
@click.argument("model", type=click.Path(path_type=Path))
@input_options
@click.option("--random", is_flag=True, expose_value=False, hidden=True)  # once needed for inputs without a file
@each_provider_option
@engine_option
@kernels_option
@browsers_options
@click.option(
    "--output-dir",
    type=click.Path(path_type=Path),
    metavar="D",
    help="Write each output to this folder, as .npy; sequences and maps as .json.",
)
@runs_option(1, "Number of runs; the times of the first and last are shown.")
@json_option("outputs and times")
def run(
    model: Path,
    inputs: Inputs,
    providers: tuple[str, ...],
    engines: tuple[str, ...],
    browsers: list[BrowserOptions],
    output_dir: Path | None,
    runs: int,
    json_file: Path | None,
) -> None:
    """Run MODEL once, in each browser, on each provider, by each engine, and show its outputs.

    Inputs without a file are random. The default provider is webgpu, or wasm in a browser without WebGPU.
    """
    from py_ort.providers import canonical_provider
    from py_ort.testing.case import relative_error
    from py_ort.testing.results import OURS

    places = [
        (browser, provider, engine)
        for browser in browsers
        for provider in dict.fromkeys(map(canonical_provider, providers)) or (None,)
        for engine in dict.fromkeys(engines) or (OURS,)
    ]
    one = _Model(model, inputs, runs)
    results = []
    with progress() as report:
        described = inputs.describe(model)
        for browser, provider, engine in places:
            title = Ran(browser.name, provider or "", engine).title
            folder = output_dir and output_dir / re.sub(r"[^\w.]+", "-", title) if len(places) > 1 else output_dir
            try:
                tell = report if len(places) == 1 else partial(_on, report, title)
                results.append(one.run(described, browser, provider, engine, folder, tell))
            except PyOrtError as e:
                if len(places) == 1:
                    raise
                results.append(
                    Ran(browser.name, provider or "", engine, error=f"{type(e).__name__}: {in_flags(str(e))}")
                )
    reference = next((ran for ran in results if not ran.error), None)
    for ran in results:
        if reference and reference is not ran and not ran.error:
            ran.difference = max(map(relative_error, ran.arrays, reference.arrays), default=0.0)
            ran.reference = reference.title
    alone = results[0].as_dict() if len(results) == 1 else {}
    if write_json({"model": str(model), **alone, "runs": [ran.as_run() for ran in results]}, json_file):
        if alone:
            _print({"model": str(model), **alone}, _times(runs))
        else:
            out.print(_table(results, _times(runs)))
    for ran in results:
        if ran.error:
            err.print(f"{ran.title}: {ran.error}", markup=False, soft_wrap=True)
    sys.exit(any(ran.error for ran in results))


def _on(report: Report, title: str, stage: str, done: int, total: int, detail: str = "") -> None:
    """Report a stage with the place where it runs."""
    report(f"{title}: {stage}", done, total, detail)


@dataclass
class Ran:
    """A run in a browser on a provider.

    Attributes:
        asked, provider, engine: As they were asked for.
        facts: Facts about the session, and its times; see `as_dict`.
        outputs: Descriptions.
        arrays: The outputs themselves.
        error: The reason for none; "".
        difference: max |a-b| / (0.001 + |b|) against the outputs of `reference`; None: there is none.
    """

    asked: str
    provider: str
    engine: str
    facts: dict[str, Any] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    error: str = ""
    difference: float | None = None
    reference: str = ""

    @property
    def title(self) -> str:
        """Browser, engine and provider in few words."""
        from py_ort.testing.results import OURS

        return " ".join(filter(None, (self.asked, "" if self.engine == OURS else self.engine, self.provider)))

    def as_dict(self) -> dict[str, Any]:
        """Return the facts and the descriptions of outputs for JSON."""
        return {**self.facts, "outputs": self.outputs}

    def as_run(self) -> dict[str, Any]:
        """Return that with the names of `py-ort conformance --json`: browser, browser_version, engine, provider."""
        from py_ort.providers import CPU, canonical_provider
        from py_ort.testing.results import version_of

        where = {
            "browser": self.asked,
            "browser_version": version_of(self.facts.get("browser", "")),
            "engine": self.engine,
            "provider": self.provider or canonical_provider((self.facts.get("providers") or [CPU])[0]),
            "error": self.error,
        }
        return {**self.as_dict(), **where, "max_rel_err": self.difference, "reference": self.reference}


@dataclass(frozen=True)
class _Model:
    """The model and its inputs, for a run anywhere."""

    file: Path
    inputs: Inputs
    runs: int

    def run(
        self,
        model: ModelInputs,
        browser: BrowserOptions,
        provider: str | None,
        engine: str,
        folder: Path | None,
        report: Report,
    ) -> Ran:
        from py_ort import InferenceSession, SessionOptions

        options = self.inputs.fix(SessionOptions())
        providers = [provider] if provider else None
        with InferenceSession(
            self.file, options, providers, browser=browser, progress=report, engine=engine
        ) as session:
            args = session.get_inputs()
            feeds = self.inputs.feeds(args, model, image_size=(64, 64))
            for name, array in feeds.items():
                if name not in self.inputs.files:
                    err.print(f"{name}: random {array.dtype} {list(array.shape)}")
            with told_how_to_give(args, feeds, self.inputs.files):
                for number in range(self.runs):
                    report("running", number, self.runs if self.runs > 1 else 0)
                    results = session.run(None, feeds)
            described = [
                _describe(arg, array, folder) for arg, array in zip(session.get_outputs(), results, strict=True)
            ]
            return Ran(browser.name, provider or "", engine, _facts(session, engine), described, results)


def _facts(session: InferenceSession, engine: str) -> dict[str, Any]:
    from py_ort.providers import Placement
    from py_ort.testing.results import OURS

    stats = session.stats()
    placement = session.placement() if engine == OURS else Placement()  # other engines do not list nodes
    return {
        "providers": session.get_providers(),
        "nodes": placement.counts(),
        "left_out": dict(placement.left_out),
        "browser": session.browser,
        "adapter": session.adapter,
        "browser_ms": stats["browser_ms"],
        "create_ms": stats["create_ms"],
        "first_run_ms": stats["first_run_ms"],
        "last_run_ms": stats["last_run"]["total_ms"],
    }


def _describe(arg: NodeArg, value: Any, folder: Path | None) -> dict[str, Any]:
    from py_ort.testing.reproduction import file_name, save_array

    array = value if isinstance(value, np.ndarray) else None
    description: dict[str, Any] = {"name": arg.name, "dtype": arg.type if array is None else str(array.dtype)}
    if array is not None:
        description["shape"] = list(array.shape)
    elif isinstance(value, (list, dict)):
        description["shape"] = [len(value)]
    if array is not None and array.size and array.dtype.kind in "iufb":
        numbers = array.astype(np.float64)
        description |= {"min": float(numbers.min()), "max": float(numbers.max()), "mean": float(numbers.mean())}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if array is None:
            file = folder / f"{file_name(arg.name)}.json"
            file.write_text(json.dumps(value, default=lambda item: item.tolist()), encoding="utf-8")
        else:
            file = save_array(folder, arg.name, array)
        description["file"] = str(file)
    return description


def _times(runs: int) -> dict[str, str]:
    """Return the times to show, and their headings: a single run is the first and the last."""
    return _TIMES if runs > 1 else {name: words for name, words in _TIMES.items() if name != "last_run_ms"}


def _print(result: dict[str, Any], shown: dict[str, str]) -> None:
    from rich.table import Table

    nodes = ", ".join(f"{count} on {provider}" for provider, count in result["nodes"].items())
    out.print(f"[bold]{result['model']}[/]  nodes: {nodes}", soft_wrap=True)
    for name, reason in result["left_out"].items():
        out.print(f"{name} is left out: {reason}", markup=False, soft_wrap=True)
    where = " / ".join(text for text in (result["browser"], result["adapter"]) if text)
    out.print(where, soft_wrap=True)
    out.print(", ".join(f"{words} {result[name]:.0f} ms" for name, words in shown.items()))
    table = Table("output", "dtype", "shape", "min", "mean", "max", "file", box=None, header_style="bold")
    for item in result["outputs"]:
        numbers = [f"{item[key]:.6g}" if key in item else "" for key in ("min", "mean", "max")]
        table.add_row(item["name"], item["dtype"], str(item.get("shape", "")), *numbers, item.get("file", ""))
    out.print(table)


def _table(results: list[Ran], shown: dict[str, str]) -> Table:
    from rich.table import Table

    from py_ort.testing.results import version_of

    table = Table("where", "version", "nodes", *shown.values(), "difference", "", box=None)
    for column in table.columns[3:-1]:
        column.justify = "right"
    for ran in results:
        facts = ran.facts
        times = [f"{facts[name]:.0f} ms" if facts else "" for name in shown]
        nodes = ", ".join(f"{count} {name}" for name, count in facts.get("nodes", {}).items() if count)
        off = "" if ran.difference is None else f"{ran.difference:.1e}"
        table.add_row(ran.title, version_of(facts.get("browser", "")), nodes, *times, off, ran.error[:100])
    return table

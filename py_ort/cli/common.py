"""Options and output that several commands share."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from py_ort.browser.options import LAUNCHERS, WEBGPU, BrowserOptions

Report = Callable[[str, int, int], None]

#: For everything that is not the result: `--json` and pipes see stdout only.
err = Console(stderr=True, highlight=False)
#: Where there is no terminal, tables get the room they need.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 140)

provider_option = click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="P",
    help="Execution provider: webgpu or wasm; repeat it for several, best first. Default: webgpu, then wasm.",
)


def _shapes(context: click.Context, parameter: click.Parameter, items: tuple[str, ...]) -> dict[str, list[int]]:
    shapes = {}
    for item in items:
        name, equals, dims = item.rpartition("=")
        if not equals or not all(d.isdecimal() for d in dims.split("x")):
            raise click.BadParameter(f"expected NAME=1x3x224x224, got {item!r}")
        shapes[name] = [int(d) for d in dims.split("x")]
    return shapes


shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    callback=_shapes,
    metavar="NAME=1x3x224x224",
    help="Shape of an input that is open.",
)


#: Where a command finds the files of --kernels again (`click.Context.meta`).
KERNEL_FILES = "py_ort.kernels"


def _load_kernels(context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]) -> None:
    from py_ort.user_kernels import load_kernels

    context.meta[KERNEL_FILES] = files
    for file in files:
        load_kernels(file)


kernels_option = click.option(
    "--kernels",
    multiple=True,
    callback=_load_kernels,
    expose_value=False,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="User kernels (.wgsl or .py) that the model needs; may be repeated.",
)


def browser_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --browser, --launcher and --webgpu; the command gets them as `browser: BrowserOptions`."""

    def with_browser(*args: Any, browser: str | None, launcher: str, webgpu: str | None, **options: Any) -> Any:
        given = {"browser": browser, "launcher": launcher, "webgpu": webgpu}
        chosen = BrowserOptions(**{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
        return command(*args, browser=chosen, **options)

    with_browser.__name__, with_browser.__doc__ = command.__name__, command.__doc__
    with_browser.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option("--webgpu", type=click.Choice(WEBGPU), help="WebGPU on the GPU, on the CPU (software), or off."),
        click.option("--launcher", type=click.Choice(LAUNCHERS), help="How the browser is started."),
        click.option(
            "--browser",
            metavar="B",
            help="chromium, a binary's path, cdp:URL, playwright:WSURL or capture. Default: chromium.",
        ),
    ):
        with_browser = option(with_browser)
    return with_browser


@contextlib.contextmanager
def progress(quiet: bool = False) -> Iterator[Report]:
    """Show what is being done: a spinner and a clock in a terminal, else a line for each new stage; on stderr."""
    if quiet:
        yield lambda stage, done, total: None
        return
    if err.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=err, transient=True) as shown:
            task = shown.add_task("starting")
            yield lambda stage, done, total: shown.update(task, description=_text(stage, done, total))
        return
    last = ""

    def report(stage: str, done: int, total: int) -> None:
        nonlocal last
        if stage != last:
            last = stage
            err.print(f"… {_text(stage, done, total)}")

    yield report


def _text(stage: str, done: int, total: int) -> str:
    return f"{stage} {done}/{total}" if total else stage

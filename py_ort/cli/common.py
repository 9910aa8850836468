"""Options and output that several commands share."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from py_ort.browser.browser_options import LAUNCHERS, WEBGPU, BrowserOptions
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.providers import AVAILABLE, CPU, DEFAULT
from py_ort.runtime.engines import ENGINES


class Report(Protocol):
    """Receives progress: the stage, how much of it is done and of how much, and a detail."""

    def __call__(self, stage: str, done: int, total: int, detail: str = "") -> None: ...


#: For everything but the result: `--json` and pipes use stdout only.
err = Console(stderr=True, highlight=False)
#: Where there is no terminal, tables get the room they need.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 140)


def _known_providers(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    from py_ort.providers import canonical_provider

    try:
        for name in names:
            canonical_provider(name)
    except InvalidArgument as e:
        raise click.BadParameter(str(e)) from e
    return names


def _provider_option(text: str) -> Callable[..., Any]:
    return click.option("--provider", "providers", multiple=True, callback=_known_providers, metavar="P", help=text)


_PROVIDERS = f"Execution provider: {', '.join(AVAILABLE[:-1])} or {AVAILABLE[-1]}"
provider_option = _provider_option(
    f"{_PROVIDERS}; repeat it for several, the preferred one first. Default: {', then '.join(DEFAULT)}."
)
each_provider_option = _provider_option(
    f"{_PROVIDERS}; {CPU} runs the nodes that it lacks. Repeat it to run on each of several."
)


engine_option = click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(ENGINES),
    help="The engine that runs the models; repeat it to compare several. Default: py_ort.",
)


#: Key of the files of --kernels in `click.Context.meta`.
KERNEL_FILES = "py_ort.kernels"


def _load_kernels(context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]) -> None:
    from py_ort.user_kernels import load_kernels

    context.meta[KERNEL_FILES] = files
    for file in files:
        try:
            load_kernels(file)
        except Exception as e:  # a file of Python may raise anything
            raise click.BadParameter(f"{file}: {e if isinstance(e, PyOrtError) else f'{type(e).__name__}: {e}'}") from e


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
    """Add --browser, and how it is started and reached; the command gets them as `browser: BrowserOptions`."""
    return _with_browsers(command, False)


def browsers_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add them with a --browser that may be repeated; the command gets `browsers`, a list of `BrowserOptions`."""
    return _with_browsers(command, True)


#: Options of `BrowserOptions` besides the browser.
_HOW = ("launcher", "webgpu", "launch_timeout", "host", "port", "public_url", "certificate")


def _with_browsers(command: Callable[..., Any], several: bool) -> Callable[..., Any]:
    def with_browser(*args: Any, browser: Any, **options: Any) -> Any:
        chosen = []
        how = {name: options.pop(name) for name in _HOW}
        for name in dict.fromkeys(browser or (None,)) if several else (browser,):
            given = {"browser": name, **how}
            chosen.append(BrowserOptions(**{k: v for k, v in given.items() if v is not None}))
        return command(*args, **({"browsers": chosen} if several else {"browser": chosen[0]}), **options)

    with_browser.__name__, with_browser.__doc__ = command.__name__, command.__doc__
    with_browser.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    again = " Repeat it for several." if several else ""
    for option in (
        click.option(
            "--certificate",
            nargs=2,
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE KEY",
            help="With --host: certificate and key for TLS; other machines need TLS for WebGPU and threads.",
        ),
        click.option(
            "--public-url",
            metavar="URL",
            help="With --host: the URL by which browsers reach this machine, if a proxy or tunnel changes it.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            metavar="N",
            help="With --host: the port to listen on. Default: a free one.",
        ),
        click.option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen on for browsers of other machines; 0.0.0.0: all addresses.",
        ),
        click.option(
            "--launch-timeout",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="Time to wait for the browser; with --browser capture, until one opens the URL. Default: 60.",
        ),
        click.option("--webgpu", type=click.Choice(WEBGPU), help="WebGPU on the GPU, on the CPU (software), or off."),
        click.option(
            "--launcher",
            type=click.Choice(LAUNCHERS),
            help="Start the browser by Playwright, or as a plain process. Default: auto, whichever is available.",
        ),
        click.option(
            "--browser",
            multiple=several,
            metavar="B",
            help="chromium, firefox, webkit, qtwebengine, a binary's path, cdp:URL, playwright:WSURL, "
            "webdriver:URL#BROWSER or capture, which prints a URL for any browser. Default: chromium." + again,
        ),
    ):
        with_browser = option(with_browser)
    return with_browser


#: Files that no command writes reports to: a name may be a model, meant for the command itself.
_MODELS = (".onnx", ".ort", ".pyort")


class OutputFile(click.ParamType):
    """A file to write, whose folder exists: hours of work may go into the file."""

    name = "file"

    def __init__(self, stdout: bool = False) -> None:
        """`stdout`: "-" is stdout."""
        self._stdout = stdout

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the path."""
        path = Path(value)
        if self._stdout and path.suffix in _MODELS:
            self.fail(f"{value} is a model: give another file, or - for stdout", parameter, context)
        if not (self._stdout and str(value) == "-") and (path.is_dir() or not path.absolute().parent.is_dir()):
            what = "is a folder" if path.is_dir() else f"there is no folder {path.absolute().parent}"
            self.fail(f"{value}: {what}", parameter, context)
        return path


def json_option(what: str) -> Callable[..., Any]:
    """Make --json FILE; the command gets `json_file`, for `write_json`."""
    text = f"Write {what} as JSON; -: to stdout, without other output."
    return click.option("--json", "json_file", type=OutputFile(stdout=True), metavar="FILE", help=text)


def write_json(data: Any, file: Path | None) -> bool:
    """Write data where --json says, if given; return True if stdout is for people."""
    text = json.dumps(data, indent=1) + "\n"
    if file == Path("-"):
        sys.stdout.write(text)
        return False
    if file:
        file.write_text(text)
    return True


def runs_option(default: int, about: str) -> Callable[..., Any]:
    """Make --runs: a number from 1 on."""
    return click.option("--runs", type=click.IntRange(min=1), default=default, show_default=True, help=about)


def threads_option(default: int, about: str) -> Callable[..., Any]:
    """Make --threads: a number from 1 to 256, or 0, if that is the default, which is automatic."""
    numbers = click.IntRange(min(default, 1), 256)
    return click.option("--threads", type=numbers, default=default, show_default=True, help=about)


@contextlib.contextmanager
def progress(quiet: bool = False) -> Iterator[Report]:
    """Show progress on stderr.

    In a terminal: a spinner, a clock, and the time left, if known. Elsewhere: a line for each new stage, and now and
    then a line with the progress of a long one.
    """
    if quiet:
        yield lambda stage, done, total, detail="": None
        return
    left = _TimeLeft()
    if err.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=err, transient=True) as shown:
            task = shown.add_task("starting")
            yield lambda stage, done, total, detail="": shown.update(
                task, description=_text(stage, done, total, detail, left.after(done, total))
            )
        return
    last, said = "", time.monotonic()

    def report(stage: str, done: int, total: int, detail: str = "") -> None:
        nonlocal last, said
        remaining = left.after(done, total)
        if stage != last or (total and time.monotonic() - said > _SECONDS_BETWEEN_LINES):
            last, said = stage, time.monotonic()
            err.print(f"… {_text(stage, done, total, detail, remaining)}", markup=False, soft_wrap=True)

    yield report


_SECONDS_BETWEEN_LINES = 30


class _TimeLeft:
    """Estimates the time left from the steps so far, without the first, which includes preparations."""

    def __init__(self) -> None:
        self._total, self._began, self._first, self._warm = 0, 0.0, 0, False

    def after(self, done: int, total: int) -> str:
        """Return the time left in words; "" if it is unknown or short."""
        now = time.monotonic()
        if total != self._total:
            self._total, self._began, self._first, self._warm = total, now, done, False
        elif not self._warm and done > self._first:
            self._began, self._first, self._warm = now, done, True
        gone, spent = done - self._first, now - self._began
        if not total or gone <= 0 or spent < 2:
            return ""
        seconds = round(spent / gone * (total - done))
        minutes, seconds = divmod(seconds, 60) if seconds > 2 else (0, 0)
        words = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"
        return f"about {words} left" if minutes or seconds else ""


def _text(stage: str, done: int, total: int, detail: str, left: str) -> str:
    return ", ".join(filter(None, (f"{stage} {_amount(done, total)}" if total else stage, detail, left)))


def _amount(done: int, total: int) -> str:
    """Return a progress; so large numbers are bytes."""
    return f"{done}/{total}" if total < 1e5 else f"{done / 1e6:.1f} of {total / 1e6:.1f} MB"

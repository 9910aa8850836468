"""Runs a file's kernels, and runs them again whenever the file changes, for authors of kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from py_ort.exceptions import PyOrtError
from py_ort.user_kernels.kernel_files import load_kernels
from py_ort.user_kernels.trial import Trial, try_out

if TYPE_CHECKING:
    from py_ort.browser.browser_options import BrowserOptions


#: Seconds without a change after which a file counts as written.
_SETTLING = 0.05


@dataclass
class Report:
    """Result of one version of a file.

    Attributes:
        trials: The trial of each kernel that ran.
        errors: Errors of the file (name ""), or of its kernels by name.
        seconds: Total duration.
    """

    trials: list[Trial] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    seconds: float = 0.0


def run_file(path: Path, browser: BrowserOptions | None = None, runs: int = 5) -> Report:
    """Run the kernels of a file once on their examples. The report includes errors."""
    report, began = Report(), time.perf_counter()
    try:
        kernels = load_kernels(path)
    except Exception as e:  # a Python file may raise anything
        kernels, report.errors[""] = [], e
    for kernel in kernels:
        try:
            report.trials.append(try_out(kernel, browser, runs))
        except PyOrtError as e:
            report.errors[kernel.name] = e
    report.seconds = time.perf_counter() - began
    return report


def watch_file(
    path: Path,
    browser: BrowserOptions | None = None,
    runs: int = 5,
    *,
    interval: float = 0.2,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Report]:
    """Yield a report of a file, and another one after each change; end when `stop` returns True.

    Unchanged pipelines are not compiled again: they stay in the page.
    """
    last = b""
    while not stop():
        now = _version(path)
        if not now or now == last:
            time.sleep(interval)
            continue
        time.sleep(_SETTLING)
        if _version(path) != now:
            continue  # an editor is in the middle of writing it
        last = now
        yield run_file(path, browser, runs)


def _version(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # an editor is replacing it

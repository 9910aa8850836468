"""The output of onnxruntime-web's runner, whose reporter is karma-mocha-reporter."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from py_ort.testing.results import FAILED, PASSED, SKIPPED, Outcome

_MARKS = {PASSED: "[green]✔[/]", FAILED: "[red]✖[/]", SKIPPED: "[bright_black]ℹ[/]"}
#: Milliseconds from which a test's time is told.
_SLOW = 100


class Report:
    """Prints groups as they end, and the failures again at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._counts = dict.fromkeys((PASSED, FAILED, SKIPPED), 0)
        self._failures: dict[str, list[tuple[str, Outcome]]] = {}
        self._net = 0.0

    @property
    def failed(self) -> bool:
        """Return True if a test failed, or none was run."""
        return self._counts[FAILED] > 0 or self._counts[PASSED] == 0

    def group(self, title: str, outcomes: dict[str, Outcome]) -> None:
        """Print a heading and its tests; those skipped are only counted."""
        ran = {name: outcome for name, outcome in outcomes.items() if outcome.status != SKIPPED}
        if ran:
            self._console.print(f"  {title}", markup=False)
        for name, outcome in outcomes.items():
            self.count(title, name, outcome)
            if outcome.status != SKIPPED:
                slow = f" [yellow]({outcome.seconds * 1000:.0f}ms)[/]" if outcome.seconds * 1000 >= _SLOW else ""
                self._console.print(f"    {_MARKS[outcome.status]} {escape(name)}{slow}")

    def count(self, title: str, name: str, outcome: Outcome) -> None:
        """Count a test of a group without printing it."""
        self._counts[outcome.status] += 1
        self._net += outcome.seconds
        if outcome.status == FAILED:
            self._failures.setdefault(title, []).append((name, outcome))

    def end(self, seconds: float) -> None:
        """Print the counts and the failures."""
        print_ = self._console.print
        at = time.strftime("%H:%M:%S GMT%z (%Z)")
        print_(f"\n[green]Finished in {_interval(seconds)} / {_interval(self._net)} @ {at}[/]", highlight=False)
        print_("\n[bold underline]SUMMARY:[/]")
        for status, word in ((PASSED, "completed"), (SKIPPED, "skipped"), (FAILED, "failed")):
            if (count := self._counts[status]) or status == PASSED:
                print_(f"{_MARKS[status]} {count} test{'' if count == 1 else 's'} {word}")
        if self._failures:
            print_("\n[bold underline]FAILED TESTS:[/]")
        for title, failures in self._failures.items():
            print_(f"  {title}", markup=False)
            for name, outcome in failures:
                print_(f"    {_MARKS[FAILED]} {escape(name)}\n      {escape(outcome.reason)}")


def _interval(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds, 3), 60)
    text = f"{seconds:.3f}".rstrip("0").rstrip(".") + (" sec" if seconds == 1 else " secs")
    return f"{minutes:.0f} min{'' if minutes == 1 else 's'} {text}" if minutes else text


def performance(console: Console, name: str, init: float, runs: Sequence[float]) -> None:
    """Print the times of a model: of its creation, its first run and the runs after it, in ms."""
    first, *steady = runs
    console.print(f"  {name}", markup=False)
    console.print(f"    Init: {init:.2f} ms, FirstRun: {first:.2f} ms", highlight=False)
    console.print(f"    Runs: {', '.join(f'{ms:.2f}' for ms in steady)}", highlight=False)
    console.print(
        f"    P50: {statistics.median(steady):.2f} ms, Avg: {statistics.fmean(steady):.2f} ms, "
        f"SD: {statistics.pstdev(steady):.2f} ms",
        highlight=False,
    )

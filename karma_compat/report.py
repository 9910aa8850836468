"""What mocha would print."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from py_ort.testing.results import FAILED, PASSED, SKIPPED, Outcome

_MARKS = {PASSED: "[green]✔[/]", FAILED: "[red]✖[/]", SKIPPED: "[cyan]-[/]"}
#: Milliseconds from which a test's time is told.
_SLOW = 100


class Report:
    """Prints groups as they end, and the failures again at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._counts = dict.fromkeys((PASSED, FAILED, SKIPPED), 0)
        self._failures: list[tuple[str, Outcome]] = []

    @property
    def failed(self) -> bool:
        """Whether a test failed, or none was run."""
        return self._counts[FAILED] > 0 or self._counts[PASSED] == 0

    def group(self, title: str, outcomes: dict[str, Outcome]) -> None:
        """Print a heading and its tests; those skipped are only counted."""
        ran = {name: outcome for name, outcome in outcomes.items() if outcome.status != SKIPPED}
        if ran:
            self._console.print(f"  {title}", markup=False)
        for name, outcome in outcomes.items():
            self.count(f"{title} {name}", outcome)
            if outcome.status != SKIPPED:
                slow = f" [yellow]({outcome.seconds * 1000:.0f}ms)[/]" if outcome.seconds * 1000 >= _SLOW else ""
                self._console.print(f"    {_MARKS[outcome.status]} {escape(name)}{slow}")

    def count(self, name: str, outcome: Outcome) -> None:
        """Count a test without printing it."""
        self._counts[outcome.status] += 1
        if outcome.status == FAILED:
            self._failures.append((name, outcome))

    def end(self, seconds: float) -> None:
        """Print the counts and the failures."""
        print_ = self._console.print
        print_(f"\nFinished in {seconds:.1f} secs")
        print_("\nSUMMARY:")
        for status, word in ((PASSED, "tests completed"), (SKIPPED, "tests skipped"), (FAILED, "tests failed")):
            if self._counts[status]:
                print_(f"{_MARKS[status]} {self._counts[status]} {word}")
        if self._failures:
            print_("\nFAILED TESTS:")
        for name, outcome in self._failures:
            print_(f"  {_MARKS[FAILED]} {escape(name)}\n    {escape(outcome.reason)}")


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

"""`--ort-html`: the tests of a pytest run against the browsers, providers and engines that they ran in, as a page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from py_ort.runtime.engines import OURS
from py_ort.testing.remotes import ANY_REMOTE

if TYPE_CHECKING:
    from py_ort.testing.results import Results

#: Properties of a test: where it was to run; browser, adapter and nodes by provider of a session that it made.
TARGET, PLACE = "ort_target", "ort_place"
#: Property of a test: a command line that repeats its failure.
COMMAND = "ort_command"


class RunPage:
    """Collects reports, also from pytest-xdist's workers, and writes the page at the end.

    Args:
        file: The page.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._began = file, time.perf_counter()
        self._reports: dict[tuple[str, ...], list[pytest.TestReport]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the report of a test that has a target."""
        for name, value in report.user_properties:
            if name == TARGET:
                self._reports.setdefault(tuple(value), []).append(report)  # type: ignore[arg-type]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the page."""
        from py_ort.testing.results_table import page

        runs = [self._results(target, reports, session.config) for target, reports in self._reports.items()]
        title = f"pytest {' '.join(map(str, session.config.invocation_params.args))}".strip()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(page(runs, title, {}), encoding="utf-8")

    def _results(self, target: tuple[str, ...], reports: list[pytest.TestReport], config: pytest.Config) -> Results:
        from py_ort.testing.reproduction import of_test
        from py_ort.testing.results import FAILED, PASSED, SKIPPED, Outcome, Results

        browser, provider, engine, words = target
        found = Results(providers=(provider,), asked=browser, engine=engine)
        for report in reports:
            outcome = found.cases.setdefault(_name(report.nodeid, words), Outcome(PASSED))
            outcome.seconds += report.duration
            if not report.passed and outcome.status != FAILED:
                outcome.status, outcome.reason = FAILED if report.failed else SKIPPED, _reason(report)
            if report.failed:
                outcome.commands.append(of_test(report.nodeid, _options(target, config), config))
            for name, value in report.user_properties:
                if name == COMMAND and report.failed:
                    outcome.commands.append(value)  # type: ignore[arg-type]
                if name == PLACE:
                    found.browser, found.adapter, outcome.providers = value  # type: ignore[misc]
        found.seconds = round(sum(outcome.seconds for outcome in found.cases.values()), 1)
        return found


def _options(target: tuple[str, ...], config: pytest.Config) -> dict[str, str]:
    """Return the options with which pytest runs a test in this place only."""
    browser, provider, engine, _ = target
    found = {"ort-provider": provider, **({} if engine == OURS else {"ort-engine": engine})}
    if browser not in (ANY_REMOTE, "playwright"):
        found["ort-browser"] = browser
    for name in ("ort-webgpu", "ort-within"):
        if given := config.getoption(f"--{name}"):
            found[name] = given
    return found


def _name(test: str, target: str) -> str:
    """Return a test's id without its target, which is a column of the page."""
    name, _, parameters = test.partition("[")
    rest = parameters.removesuffix("]").partition(target)
    shown = "-".join(filter(None, (part.strip("-") for part in rest[::2])))
    return f"{name}[{shown}]" if shown else name


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else report.longreprtext

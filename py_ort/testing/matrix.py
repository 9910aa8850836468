"""Cases in several browsers, by several engines, on several providers: one run after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from itertools import product

from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import PyOrtError
from py_ort.testing.case import Case
from py_ort.testing.fleet import Fleet, run_anywhere
from py_ort.testing.results import FAILED, OURS, SKIPPED, Outcome, Results
from py_ort.testing.runner import RunnerOptions, check_ids


def places(
    options: RunnerOptions, browsers: Sequence[BrowserOptions], providers: Sequence[str], engines: Sequence[str] = ()
) -> list[RunnerOptions]:
    """Return options for each browser, engine and provider, all else as in `options`."""
    return [
        replace(options, browser=browser, engine=engine, providers=(provider,))
        for browser, provider, engine in dict.fromkeys(product(browsers, providers, engines or (OURS,)))
    ]


def run_matrix(
    cases: Sequence[Case],
    runs: Sequence[RunnerOptions],
    progress: Callable[[str, int, int, int], None] = lambda *_: None,
    opened: Fleet | None = None,
) -> list[Results]:
    """Run cases as each of these options says. A run that cannot begin, or breaks off, says why; the others go on.

    Args:
        cases: All of them, with ids of their own.
        runs: See `places`.
        progress: Called with where the cases run, how many are done and how many of these failed, and how many there
            are.
        opened: The fleet of the first of these options, if its browsers are opening already. It ends with that run.

    Raises:
        InvalidArgument: Two cases have one id.
    """
    check_ids(cases)
    found = []
    for options in runs:
        title = options.results().title
        began = time.perf_counter()
        try:
            tell = partial(progress, title)
            if opened:
                with opened as fleet:
                    opened = None
                    results = fleet.run(cases, tell)
            else:
                results = run_anywhere(cases, options, tell)
        except (PyOrtError, BrokenProcessPool) as e:
            error = f"{type(e).__name__}: {e}"
            failed = {case.id: Outcome(SKIPPED, case.skip) if case.skip else Outcome(FAILED, error) for case in cases}
            results = options.results(cases=failed, error=error)
        results.seconds = round(time.perf_counter() - began, 1)
        found.append(results)
    return found

"""For Karma's framework: runs a command line's cases in a page that Karma has open.

Prints a line of JSON for each thing that the page is told: a URL to open in a frame, how many cases there are, what
came of each, and that it is over.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator

from karma_compat.arguments import Arguments, parse
from karma_compat.run import absent, runner_options
from karma_compat.suite import Group, groups
from py_ort import BrowserOptions
from py_ort.browser.caller_pages import given
from py_ort.exceptions import PyOrtError
from py_ort.providers import PROVIDERS, canonical_provider
from py_ort.runtime.probe import probe
from py_ort.testing.results import FAILED, SKIPPED, Outcome
from py_ort.testing.runner import run_case, try_providers


def tell(**message: object) -> None:
    """Tell the page."""
    print(json.dumps(message), flush=True)


def run(arguments: Arguments) -> None:
    """Run what the arguments say, each backend in turn."""
    with given(lambda url: tell(open=url)) as browser:
        where = f"{probe(browser)['browser']} on {platform.system()}"
        found = [(name, group) for name in arguments.backends for group in groups(arguments, name, where)]
        tell(total=sum(len(group.cases) + len(group.missing) for _, group in found))
        for backend, group in found:
            for name, outcome in outcomes(arguments, backend, browser, group):
                tell(
                    suite=f"{backend} {group.title}",
                    name=name,
                    status=outcome.status,
                    reason=outcome.reason,
                    seconds=outcome.seconds,
                )
    tell(complete=True)


def outcomes(
    arguments: Arguments, backend: str, browser: BrowserOptions, group: Group
) -> Iterator[tuple[str, Outcome]]:
    """Yield what comes of a group's cases."""
    options = runner_options(arguments, backend, browser)
    instead: Outcome | None = None
    if not arguments.named and (reason := PROVIDERS[canonical_provider(backend)].unavailable):
        instead = Outcome(SKIPPED, reason)
    elif group.cases:
        try:
            try_providers(options, browser)
        except PyOrtError as e:
            instead = Outcome(FAILED, e.message)
    for case in group.cases:
        yield case.id, Outcome(SKIPPED, case.skip) if case.skip else instead or run_case(case, options)
    yield from absent(group).items()


if __name__ == "__main__":
    try:
        run(parse(sys.argv[1:]))
    except PyOrtError as e:
        tell(error=f"{type(e).__name__}: {e}")
        sys.exit(1)

"""Results for people: a summary for the terminal, a page for the browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from py_ort.testing.changes import Change
from py_ort.testing.results import FAILED, OURS, PASSED, SKIPPED, Results

#: Cases of one reason that are named.
_NAMED = 5


def summary(results: Results) -> Table | None:
    """Return the kinds of failure with their counts and some of their cases; None where there is none.

    Failures that were expected are marked as known.
    """
    groups: dict[str, list[str]] = {}
    for name, outcome in results.cases.items():
        if reason := outcome.kind():
            groups.setdefault(
                reason + (" (known)" if outcome.status == FAILED and name in results.known else ""), []
            ).append(name)
    table = Table("number", "reason", "cases", box=None, header_style="bold")
    table.columns[0].justify = "right"
    for reason, names in sorted(groups.items(), key=lambda item: -len(item[1])):
        named = sorted(names)[:_NAMED]
        more = [f"{len(names) - len(named)} more"] if named and len(names) > len(named) else []
        table.add_row(str(len(names)), reason, ", ".join([*named, *more]))
    return table if groups else None


def totals(results: Results) -> str:
    """Return how many cases have which status: "3 passed, 1 failed (1 known), 0 skipped"; or why none was run."""
    known = sum(outcome.status == FAILED and name in results.known for name, outcome in results.cases.items())
    note = {FAILED: f" ({known} known)" if known else ""}
    counts = (f"{results.count(status)} {status}{note.get(status, '')}" for status in (PASSED, FAILED, SKIPPED))
    return results.error or ", ".join(counts)


def overview(runs: Sequence[Results]) -> Table:
    """Return a table of several runs."""
    table = Table("where", "version", "passed", "failed", "known", "skipped", "s", "", box=None, header_style="bold")
    for column in table.columns[2:7]:
        column.justify = "right"
    for run in runs:
        known = sum(outcome.status == FAILED and name in run.known for name, outcome in run.cases.items())
        counts = [run.count(PASSED), run.count(FAILED) - known, known, run.count(SKIPPED)]
        texts = ["", "", "", ""] if run.error else map(str, counts)
        table.add_row(run.title, run.version, *texts, f"{run.seconds:.0f}", run.trouble.partition("\n")[0][:_SHORT])
    return table


#: Letters of an error in a table.
_SHORT = 100


def fleet(run: Results) -> Table:
    """Return a table of the browsers that shared a run's cases."""
    table = Table("browser", "version", "cases", "", box=None, header_style="bold")
    table.columns[2].justify = "right"
    for node in run.fleet:
        table.add_row(node["name"], node["found"], str(node["cases"]), node["error"].partition("\n")[0][:_SHORT])
    return table


def changed(changes: Sequence[Change]) -> Iterator[str]:
    """Yield a line for each kind of change: the number of cases, and the worst of them."""
    for change in changes:
        if not change.case:
            yield f"{change.where} {change.what}"
    cases = [change for change in changes if change.case]
    counts = Counter(change.what for change in cases)
    yield ", ".join(f"{count} {what}" for what, count in counts.items()) or "no case has another result"
    for change in cases[:_CHANGES]:
        yield f"{change.where}: {change.case} {change.what}{f': {change.reason}' if change.reason else ''}"
    if len(cases) > _CHANGES:
        yield f"{len(cases) - _CHANGES} more"


_CHANGES = 20


def page(
    runs: Sequence[Results], title: str, groups: Mapping[str, str], changes: Sequence[Change] | None = None
) -> str:
    """Return the results as an HTML page: runs, groups of cases, cases, and changes.

    Args:
        runs: All of the same cases.
        title: The page's title.
        groups: The group of each case; see `Case.group`.
        changes: Since earlier results; None: there were none.
    """
    from py_ort.pages.template import render

    reasons: dict[str, int] = {"": 0}
    cases = [
        [name, groups.get(name, ""), [_cell(run, name, reasons) for run in runs]]
        for name in sorted(dict.fromkeys(name for run in runs for name in run.cases))
    ]
    return render(
        "matrix",
        title,
        {"runs": [run.title for run in runs], "cases": cases, "reasons": list(reasons)},
        runs=[_row(run) for run in runs],
        changes=changes,
        engines=any(run.engine != OURS for run in runs),
        unlike=sum(len({cell[0] for cell in cells if cell and cell[0] != "s"}) > 1 for _, _, cells in cases),
        total=len(cases),
    )


def _row(run: Results) -> dict[str, object]:
    known = sum(outcome.status == FAILED and name in run.known for name, outcome in run.cases.items())
    counts = {status: run.count(status) for status in (PASSED, FAILED, SKIPPED)}
    fields = {name: value for name, value in run.as_run().items() if name != "cases"}
    words = {"title": run.title, "trouble": run.trouble}
    return {**fields, **words, **counts, FAILED: counts[FAILED] - known, "known": known}


def _cell(run: Results, name: str, reasons: dict[str, int]) -> list[object] | None:
    """Return [status, reason, milliseconds, nodes by provider, commands]; a status is p, f, k (known failure) or s."""
    if (outcome := run.cases.get(name)) is None:
        return None
    reason = outcome.reason
    status = outcome.status[0]
    if outcome.status == FAILED and name in run.known:
        status, reason = "k", f"{reason} (known: {run.known[name].reason})"
    counts = [f"{count} {provider}" for provider, count in outcome.providers.items() if count]
    nodes = ", ".join([*counts, *([f"in {outcome.where}"] if outcome.where else [])])
    return [status, reasons.setdefault(reason, len(reasons)), round(outcome.seconds * 1000), nodes, outcome.commands]

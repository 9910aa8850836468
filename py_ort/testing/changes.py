"""Changes since earlier results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from py_ort.exceptions import InvalidArgument
from py_ort.testing.results import FAILED, PASSED, Results

#: Possible changes of a case.
FAILS, PASSES, OTHER, NEW, GONE = "now fails", "now passes", "fails otherwise", "is new", "is gone"
#: The part of a reason that tells two failures apart: its kind, not its numbers.
_KIND = 80


@dataclass(frozen=True)
class Change:
    """A case with another result.

    Attributes:
        where: The run's title.
        case: Its id; "": the run as a whole.
        what: "now fails", "now passes", "fails otherwise", "is new" or "is gone"; of a run, in words.
        reason: Why it fails now; "".
    """

    where: str
    case: str
    what: str
    reason: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return it for JSON."""
        return asdict(self)


def read_runs(file: Path) -> list[dict[str, Any]]:
    """Return the runs that `py-ort conformance --json` wrote into a file.

    Raises:
        InvalidArgument: It is something else.
    """
    try:
        runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
        if all(isinstance(run["cases"], dict) and _key(run) for run in runs):
            return list(runs)
    except (OSError, ValueError, LookupError, TypeError) as e:
        raise InvalidArgument(f"{file}: no results of `py-ort conformance --json`: {type(e).__name__}: {e}") from e
    raise InvalidArgument(f"{file}: no results of `py-ort conformance --json`")


def changes(results: Sequence[Results], earlier: Sequence[Mapping[str, Any]]) -> list[Change]:
    """Return the changes in runs of the same browsers, engines and providers; failures first."""
    before = {_key(run): run for run in earlier}
    found = []
    for result in results:
        now = result.as_run()
        run = before.pop(_key(now), None)
        found += _run(result.title, now, run) if run else [Change(result.title, "", "was not run then")]
    found += [Change(" ".join(filter(None, key)), "", "is not run now") for key in before]
    order = {FAILS: 1, OTHER: 2, GONE: 3, NEW: 5, PASSES: 6}
    return sorted(found, key=lambda c: (order.get(c.what, 4) if c.case else 0, c.case, c.where))


def _key(run: Mapping[str, Any]) -> tuple[str, str, str]:
    return run["browser"], run["engine"], run["provider"]


def _run(where: str, now: Mapping[str, Any], run: Mapping[str, Any]) -> list[Change]:
    found = []
    for name, label in (("browser_version", "version"), ("adapter", "adapter")):
        if now[name] and run.get(name) and now[name] != run[name]:
            found.append(Change(where, "", f"has another {label}: {now[name]}, was {run[name]}"))
    for case in now["cases"].keys() | run["cases"].keys():
        if what := _change(now["cases"].get(case), run["cases"].get(case)):
            found.append(Change(where, case, what, now["cases"].get(case, {}).get("reason", "")))
    return found


def _change(now: Mapping[str, Any] | None, before: Mapping[str, Any] | None) -> str:
    if now is None or before is None:
        return GONE if now is None else NEW
    if now["status"] != before["status"]:
        return {FAILED: FAILS, PASSED: PASSES}.get(now["status"], f"now is {now['status']}")
    return OTHER if now["status"] == FAILED and _kind(now) != _kind(before) else ""


def _kind(case: Mapping[str, Any]) -> str:
    return str(case["reason"]).partition(":")[0][:_KIND]

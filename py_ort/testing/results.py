"""What came of the cases."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass
class Outcome:
    """One case. `providers`: nodes on each provider."""

    status: str
    reason: str = ""
    seconds: float = 0.0
    providers: dict[str, int] = field(default_factory=dict)


@dataclass
class Results:
    """All cases of a run, by id."""

    cases: dict[str, Outcome] = field(default_factory=dict)

    def count(self, status: str) -> int:
        """Return how many cases have a status."""
        return sum(outcome.status == status for outcome in self.cases.values())

    def as_dict(self) -> dict[str, Any]:
        """Return {passed, failed, skipped, cases: {id: {status, reason, seconds, providers}}}."""
        counts = {status: self.count(status) for status in (PASSED, FAILED, SKIPPED)}
        return {**counts, "cases": {name: asdict(outcome) for name, outcome in sorted(self.cases.items())}}

    def reasons(self) -> Counter[str]:
        """Return how often each kind of failure occurs: the first words of their reasons."""
        return Counter(outcome.reason.split(":")[0][:80] for outcome in self.cases.values() if outcome.status == FAILED)


def read_expectations(file: Path) -> dict[str, str]:
    """Return the known failures of a file: case id -> reason. TOML with one table, [known_failures]."""
    return dict(tomllib.loads(file.read_text()).get("known_failures", {}))


def surprises(results: Results, known: Mapping[str, str]) -> list[str]:
    """Return what the expectations did not say: failures that are not known, and known failures that passed."""
    texts = []
    for name, outcome in sorted(results.cases.items()):
        if outcome.status == FAILED and name not in known:
            texts.append(f"{name} failed: {outcome.reason}")
        elif outcome.status == PASSED and name in known:
            texts.append(f"{name} passed, but is listed as a known failure: {known[name]}")
    return texts

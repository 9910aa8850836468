"""What came of the cases."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from py_ort.exceptions import InvalidArgument

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass
class Outcome:
    """One case. `providers`: nodes on each provider."""

    status: str
    reason: str = ""
    seconds: float = 0.0
    providers: dict[str, int] = field(default_factory=dict)

    def kind(self) -> str:
        """Return the kind of failure, by the first words of its reason, or the reason to skip; "" if it passed."""
        if self.status == SKIPPED:
            return f"skipped: {self.reason}"
        return self.reason.split(":")[0][:80] if self.status == FAILED else ""


@dataclass
class Results:
    """All cases of a run.

    Attributes:
        cases: By id.
        providers: Those that were asked for, best first.
        browser, adapter: Where the cases ran, in words; "" where they did not.
    """

    cases: dict[str, Outcome] = field(default_factory=dict)
    providers: tuple[str, ...] = ()
    browser: str = ""
    adapter: str = ""

    def count(self, status: str) -> int:
        """Return how many cases have a status."""
        return sum(outcome.status == status for outcome in self.cases.values())

    def as_dict(self) -> dict[str, Any]:
        """Return {providers, browser, adapter, passed, failed, skipped, cases: {id: {status, reason, seconds,
        providers}}}.
        """
        where = {"providers": list(self.providers), "browser": self.browser, "adapter": self.adapter}
        counts = {status: self.count(status) for status in (PASSED, FAILED, SKIPPED)}
        return {**where, **counts, "cases": {name: asdict(outcome) for name, outcome in sorted(self.cases.items())}}


def read_expectations(file: Path) -> dict[str, str]:
    """Return the known failures of a file: case id -> reason. TOML with one table, [known_failures].

    Raises:
        InvalidArgument: It is something else.
    """
    try:
        tables = tomllib.loads(file.read_text())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise InvalidArgument(f"{file}: {e}") from e
    known = tables.get("known_failures")
    if len(tables) != 1 or not isinstance(known, dict) or not all(isinstance(reason, str) for reason in known.values()):
        raise InvalidArgument(f'{file}: one table is expected, [known_failures], with lines of the form id = "reason"')
    return known


def expectations_of(source: str, provider: str, fallback: bool = True) -> dict[str, str]:
    """Return the failures of a source of cases that py_ort knows of itself; none of a folder's.

    Args:
        source: As for `load_cases`.
        provider: The first one, its canonical name.
        fallback: Whether other providers may run nodes.
    """
    name = f"{source.partition(':')[0]}.{provider}{'' if fallback else '-alone'}.toml"
    file = Path(__file__).parent / "expectations" / name
    return read_expectations(file) if (source == "onnx-node" or source.startswith("ort-web:")) and file.exists() else {}


def surprises(results: Results, known: Mapping[str, str]) -> list[str]:
    """Return what the expectations did not say: failures that are not known, known failures that passed, and known
    failures of which there is no case.
    """
    texts = [f"{name} is listed as a known failure, but there is no such case" for name in known.keys() - results.cases]
    for name, outcome in results.cases.items():
        if outcome.status == FAILED and name not in known:
            texts.append(f"{name} failed: {outcome.reason}")
        elif outcome.status == PASSED and name in known:
            texts.append(f"{name} passed, but is listed as a known failure: {known[name]}")
    return sorted(texts)

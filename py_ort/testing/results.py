"""Results of cases."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from py_ort.exceptions import InvalidArgument
from py_ort.runtime.engines import OURS

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass
class Outcome:
    """The result of a case.

    Attributes:
        status: "passed", "failed" or "skipped".
        reason: Why it is not "passed".
        seconds: Duration.
        providers: Nodes on each provider.
        where: The browser of a fleet in which the case ran; "".
        commands: Command lines that repeat a failure.
    """

    status: str
    reason: str = ""
    seconds: float = 0.0
    providers: dict[str, int] = field(default_factory=dict)
    where: str = ""
    commands: list[str] = field(default_factory=list)

    def kind(self) -> str:
        """Return the kind of failure, by the first words of its reason, or the reason to skip; "" if it passed."""
        if self.status == SKIPPED:
            return f"skipped: {self.reason}"
        return self.reason.split(":")[0][:80] if self.status == FAILED else ""


@dataclass(frozen=True)
class Expectation:
    """A known failure, with the reason; `may_pass` if the case may also pass, as with random numbers."""

    reason: str
    may_pass: bool = False


def version_of(browser: str) -> str:
    """Return the version of a browser that says its name and version."""
    return next((word for word in browser.split() if word[0].isdigit()), "")


@dataclass
class Results:
    """All cases of a run: in one browser, by one engine, on one provider.

    Attributes:
        cases: By id.
        providers: The requested providers, best first.
        browser, adapter: Where the cases ran, in words; "" where they did not.
        asked: The browser, as it was asked for: "firefox".
        engine: The engine that ran them: "py_ort", or a peer.
        error: The reason why no case ran; "".
        known: Failures that are expected, by case id.
        seconds: Duration of the run.
        system: Where the browser ran: "Linux x86_64"; "" if it was not started here.
        date: When, e.g. "2026-11-22".
        fleet: The browsers that shared the cases, where there were several: `py_ort.testing.fleet.Node.as_dict`.
    """

    cases: dict[str, Outcome] = field(default_factory=dict)
    providers: tuple[str, ...] = ()
    browser: str = ""
    adapter: str = ""
    asked: str = ""
    engine: str = ""
    error: str = ""
    known: Mapping[str, Expectation] = field(default_factory=dict)
    seconds: float = 0.0
    system: str = ""
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d"))
    fleet: list[dict[str, Any]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The place of the run, in few words: "firefox wasm"; by which engine, where that is not ours."""
        return " ".join(filter(None, (self.asked, "" if self.engine == OURS else self.engine, *self.providers[:1])))

    @property
    def version(self) -> str:
        """The browser's version."""
        return version_of(self.browser)

    @property
    def trouble(self) -> str:
        """The reason why no case ran: an error of the run, or the one reason to skip all; ""."""
        if self.error or any(outcome.status != SKIPPED for outcome in self.cases.values()):
            return self.error
        reasons = {outcome.reason for outcome in self.cases.values()}
        return f"skipped: {reasons.pop()}" if len(reasons) == 1 else ""

    def count(self, status: str) -> int:
        """Return how many cases have a status."""
        return sum(outcome.status == status for outcome in self.cases.values())

    def as_dict(self) -> dict[str, Any]:
        """Return {providers, browser, adapter, passed, failed, skipped, cases: {id: {status, reason, seconds,
        providers, where, commands}}}.
        """
        return {"providers": list(self.providers), "browser": self.browser, "adapter": self.adapter, **self._counted()}

    def as_run(self) -> dict[str, Any]:
        """Return {browser, browser_version, engine, provider, adapter, error, seconds, system, date, passed, failed,
        skipped, cases}; cases as in `as_dict`.
        """
        return {
            "browser": self.asked,
            "browser_version": self.version,
            "engine": self.engine,
            "provider": self.providers[0] if self.providers else "",
            "adapter": self.adapter,
            "error": self.error,
            "seconds": self.seconds,
            "system": self.system,
            "date": self.date,
            **({"fleet": self.fleet} if self.fleet else {}),
            **self._counted(),
        }

    def _counted(self) -> dict[str, Any]:
        counts = {status: self.count(status) for status in (PASSED, FAILED, SKIPPED)}
        return {**counts, "cases": {name: asdict(outcome) for name, outcome in sorted(self.cases.items())}}


def read_expectations(file: Path) -> dict[str, Expectation]:
    """Return the known failures of a file, by case id.

    TOML with one table, [known_failures], of lines `id = "reason"` or `id = { reason = "…", may_pass = true }`.

    Raises:
        InvalidArgument: It is something else.
    """
    try:
        tables = tomllib.loads(file.read_text())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise InvalidArgument(f"{file}: {e}") from e
    known = tables.get("known_failures")
    made = {name: _expectation(entry) for name, entry in known.items()} if isinstance(known, dict) else {"": None}
    if len(tables) != 1 or None in made.values():
        raise InvalidArgument(
            f'{file}: one table is expected, [known_failures], with lines of the form id = "reason" or '
            'id = { reason = "…", may_pass = true }'
        )
    return {name: entry for name, entry in made.items() if entry}


def _expectation(entry: Any) -> Expectation | None:
    fields = {"reason": entry} if isinstance(entry, str) else entry
    match fields:
        case {"reason": str(reason), **rest} if not rest:
            return Expectation(reason)
        case {"reason": str(reason), "may_pass": bool(may_pass), **rest} if not rest:
            return Expectation(reason, may_pass)
    return None


def expectations_of(source: str, provider: str, fallback: bool = True) -> dict[str, Expectation]:
    """Return py_ort's own list of known failures for a source of cases; empty for folders.

    Args:
        source: As for `load_cases`.
        provider: The first one, its canonical name.
        fallback: True if other providers may run nodes.
    """
    if source != "onnx-node" and not source.startswith("ort-web:"):
        return {}
    name, folder = source.partition(":")[0], Path(__file__).parent / "expectations"
    own = folder / f"{name}.{provider}-alone.toml"
    return read_expectations(folder / f"{name}.toml" if fallback or not own.exists() else own)


def surprises(results: Results) -> list[str]:
    """Return deviations from the expectations: unknown failures, known failures that passed, and known failures
    without a case; or the reason why no case ran.
    """
    if results.error:
        return [results.error]
    known = results.known
    texts = [f"{name} is listed as a known failure, but there is no such case" for name in known.keys() - results.cases]
    for name, outcome in results.cases.items():
        if outcome.status == FAILED and name not in known:
            texts.append(f"{name} failed: {outcome.reason}")
        elif outcome.status == PASSED and name in known and not known[name].may_pass:
            texts.append(f"{name} passed, but is listed as a known failure: {known[name].reason}")
    return sorted(texts)

"""The marker `ort`: a test's requirements of its browser."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

#: Places for sessions in pytest-playwright: the test's own page, a tab of its context, a context of its browser.
WITHIN = ("page", "context", "browser")
MARKER = (
    "ort(browser=, provider=, engine=, webgpu=, f16=, within=): run only in these browsers, on these providers and by "
    "these engines (a name, or several); skip where WebGPU is not of that kind ('hardware', 'software') or lacks "
    "float16 shaders; have sessions in Playwright's 'page', 'context' or 'browser'"
)


@dataclass(frozen=True)
class Wanted:
    """A test's requirements; the nearest marker counts.

    Attributes:
        browser: Names of browsers; (): any.
        provider: Names of providers; (): any.
        engine: Names of engines; (): any.
        webgpu: "hardware" or "software", for tests on WebGPU; "": any.
        f16: True if WebGPU must have float16 in shaders.
        within: One of `WITHIN`; "": the browser is ours.
    """

    browser: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()
    engine: tuple[str, ...] = ()
    webgpu: str = ""
    f16: bool = False
    within: str = ""

    @classmethod
    def of(cls, node: pytest.Item, within: str | None) -> Wanted:
        """Return the requirements of a test's markers.

        Args:
            node: The test.
            within: The value of the command line; None: none.

        Raises:
            pytest.UsageError: A marker has an unknown argument.
        """
        said: dict[str, Any] = {"within": within or ""}
        for mark in reversed(list(node.iter_markers("ort"))):
            said |= mark.kwargs
            unknown = sorted(mark.kwargs.keys() - cls.__annotations__.keys())
            if mark.args or unknown:
                wrong = ", ".join(map(repr, (*mark.args, *unknown)))
                raise pytest.UsageError(f"{node.nodeid}: the marker ort has no {wrong}; it is {MARKER}")
        for name, allowed in (("within", ("", *WITHIN)), ("webgpu", ("", "hardware", "software"))):
            if said.get(name, "") not in allowed:
                raise pytest.UsageError(f"{node.nodeid}: {name} is one of {allowed[1:]}, not {said[name]!r}")
        for name in ("browser", "provider", "engine"):
            if name in said:
                said[name] = _names(said[name])
        return cls(**said)

    def takes(self, *target: str) -> bool:
        """Return True if the test runs with these: browser, provider, engine."""
        axes = (self.browser, self.provider, self.engine)
        return all(not names or name in names for names, name in zip(axes, target, strict=True))

    def elsewhere(self, targets: Iterable[Iterable[str]]) -> str:
        """Return why the test runs on none of these targets."""
        there = list(zip(*targets, strict=True))
        axes = zip(("browser", "provider", "engine"), (self.browser, self.provider, self.engine), there, strict=True)
        missing = (
            f"{' or '.join(names)} is not among --ort-{axis} ({', '.join(dict.fromkeys(had))})"
            for axis, names, had in axes
            if names and not set(names).intersection(had)
        )
        return "; ".join(missing) or "no target has all that the marker ort asks for"


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)

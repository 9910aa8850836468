"""The check of the changelog before a release (.ci/release.py)."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from ci_programs import ci_program

ROOT = Path(__file__).parents[2]
TODAY = date(2026, 3, 9)


@pytest.fixture(scope="module")
def fault():
    return ci_program("release").changelog_fault


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ("## 0.2.0 - 2026-03-09\n\n### Added\n- A thing.\n\n## 0.1.0 - 2025-01-01\n", ""),
        ("## Unreleased\n\n### Added\n\n## 0.2.0 - 2026-03-08\n- A thing.\n", ""),
        ("## Unreleased\n- A thing.\n\n## 0.2.0 - 2026-03-08\n", "move them below `## 0.2.0 - 2026-03-09`"),
        ("## 0.2.01 - 2026-03-08\n## 0.1.0 - 2025-01-01\n", "has no line `## 0.2.0 - 2026-03-09`"),
        ("## 0.2.0 - 2026-03-10\n", "2026-03-10 is after 2026-03-09"),
        ("## 0.2.0 - 2026-02-30\n", "has '2026-02-30' where"),
        ("## 0.2.0 - 20260308\n", "has '20260308' where"),
        ("## 0.2.0 - today\n", "has 'today' where"),
        ("## 0.2.0 (2026-03-08)\n", "has '0.2.0 (2026-03-08)' where"),
    ],
)
def test_faults_of_a_changelog(fault, sections, said):
    found = fault(f"# Changelog\n\nAn introduction.\n\n{sections}", "0.2.0", TODAY)
    assert said in found and bool(found) == bool(said)


def test_the_changelog_has_only_dated_versions_below_unreleased(fault):
    """Only entries under Unreleased may keep this version from its release."""
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    released = changes.partition("\n## 0.")[1:]
    assert fault("".join(released), "0.1.0", date.today()) == ""

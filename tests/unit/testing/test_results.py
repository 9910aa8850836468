"""Expectations, and what they did not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from py_ort.exceptions import InvalidArgument
from py_ort.testing.results import FAILED, PASSED, SKIPPED, Outcome, Results, read_expectations, surprises

RESULTS = Results({"good": Outcome(PASSED), "bad": Outcome(FAILED, "wrong output: y"), "left": Outcome(SKIPPED, "no")})


@pytest.mark.parametrize(
    "known, said",
    [
        ({}, ["bad failed: wrong output: y"]),
        ({"bad": "rounds twice"}, []),
        ({"bad": "rounds twice", "left": "elsewhere"}, []),
        ({"bad": "", "good": "rounds"}, ["good passed, but is listed as a known failure: rounds"]),
        ({"bad": "", "gone": ""}, ["gone is listed as a known failure, but there is no such case"]),
    ],
)
def test_surprises(known: dict[str, str], said: list[str]) -> None:
    assert surprises(RESULTS, known) == said


def test_expectations(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('# why\n[known_failures]\n"add/0 Add" = "too small"\nrelu = ""\n')
    assert read_expectations(file) == {"add/0 Add": "too small", "relu": ""}


@pytest.mark.parametrize(
    "text", ["", "[known_failure]\na = ''", "[known_failures]\na = 1", "[known_failures", "[known_failures]\n[other]"]
)
def test_files_that_are_no_expectations(tmp_path: Path, text: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=r"known\.toml"):
        read_expectations(file)

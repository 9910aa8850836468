"""Expectations, and results without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from py_ort.exceptions import InvalidArgument
from py_ort.testing.results import (
    FAILED,
    PASSED,
    SKIPPED,
    Expectation,
    Outcome,
    Results,
    expectations_of,
    read_expectations,
    surprises,
)

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
    assert surprises(replace(RESULTS, known={name: Expectation(reason) for name, reason in known.items()})) == said


def test_nothing_was_run() -> None:
    """The result does not depend on the expectations."""
    assert surprises(replace(RESULTS, error="NoAdapter: none", known={"bad": Expectation("")})) == ["NoAdapter: none"]


def test_what_may_pass_is_no_surprise_either_way() -> None:
    known = {name: Expectation("random", may_pass=True) for name in ("good", "bad")}
    assert surprises(replace(RESULTS, known=known)) == []
    with_more = {**known, "gone": Expectation("", True)}
    assert surprises(replace(RESULTS, known=with_more))[0].startswith("gone is listed")


def test_expectations(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(
        '# why\n[known_failures]\n"add/0 Add" = "too small"\nrelu = ""\n'
        'draw = { reason = "random", may_pass = true }\nthrow = { reason = "always" }\n'
    )
    assert read_expectations(file) == {
        "add/0 Add": Expectation("too small"),
        "relu": Expectation(""),
        "draw": Expectation("random", may_pass=True),
        "throw": Expectation("always"),
    }
    file.write_text("[known_failures]\n")
    assert read_expectations(file) == {}


def test_lists_of_our_own() -> None:
    """One for all providers, and one for cases that only WebGPU cannot run."""
    shared, alone = expectations_of("onnx-node", "wasm"), expectations_of("onnx-node", "webgpu", fallback=False)
    assert shared == expectations_of("onnx-node", "webgpu") == expectations_of("onnx-node", "wasm", fallback=False)
    assert len(alone) > len(shared) > 0
    assert expectations_of("ort-web:folder", "webgpu") and not expectations_of("folder", "wasm")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "known_failures = 1",
        "[known_failure]\na = ''",
        "[known_failures]\na = 1",
        "[known_failures]\na = {}",
        "[known_failures]\na = { reason = 1 }",
        "[known_failures]\na = { reason = '', may_pass = 1 }",
        "[known_failures]\na = { reason = '', may_fail = true }",
        "[known_failures",
        "[known_failures]\n[other]",
    ],
)
def test_files_that_are_no_expectations(tmp_path: Path, text: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=r"known\.toml"):
        read_expectations(file)

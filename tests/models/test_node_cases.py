"""ONNX's own node tests, compared with py_ort/testing/expectations: both must agree.

On wasm all of them run. On WebGPU, on a software adapter, a part runs, drawn by the cases' names, so that it is the
same in each run and not selected by hand; and every case that the expectations name. `make conformance` runs all.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest
from shared_browser import BROWSER

from py_ort.testing.case import Case
from py_ort.testing.results import Expectation, expectations_of, surprises
from py_ort.testing.runner import RunnerOptions, run_cases
from py_ort.testing.sources import onnx_node, sampled

#: One in this number.
PART = 12
KNOWN = expectations_of("onnx-node", "webgpu")
KNOWN_ALONE = expectations_of("onnx-node", "webgpu", fallback=False)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return onnx_node.cases()


def check(cases: list[Case], known: dict[str, Expectation], *providers: str, fallback: bool = True) -> None:
    results = run_cases(cases, RunnerOptions(providers, fallback=fallback, browser=BROWSER))
    assert results.cases.keys() == {case.id for case in cases}
    results.known = known
    assert not (found := surprises(results)), "\n".join(found)


def fair_part(cases: list[Case], named: Collection[str]) -> list[Case]:
    drawn = {case.id for case in sampled(cases, PART)}
    return [case for case in cases if case.id in named or case.id in drawn]


@pytest.mark.timeout(900)
def test_all_on_wasm(cases) -> None:
    check(cases, KNOWN, "wasm")


@pytest.mark.timeout(900)
def test_a_part_on_webgpu_alone(cases) -> None:
    """At least one node runs there, and none elsewhere."""
    check(fair_part(cases, KNOWN_ALONE), KNOWN_ALONE, "webgpu", "wasm", fallback=False)


@pytest.mark.timeout(900)
def test_a_part_on_webgpu_with_wasm_behind_it(cases) -> None:
    """For cases that WebGPU alone cannot run: the others are the same without wasm."""
    mixed = [case for case in cases if case.id in KNOWN_ALONE]
    check(fair_part(mixed, KNOWN), KNOWN, "webgpu", "wasm")


def test_the_part_is_fair(cases) -> None:
    """It has a proportional part of the cases that WebGPU runs."""
    passing = [case for case in cases if case.id not in KNOWN_ALONE]
    assert 0.75 < len(fair_part(passing, ())) * PART / len(passing) < 1.25

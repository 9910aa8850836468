"""A part of ONNX's own node tests on WebGPU alone: without fallback, and at least one node runs there.

`make conformance FALLBACK=no` runs them all.

The part is drawn by the cases' names, so it is the same in each run, and nobody chose what is in it.
"""

from __future__ import annotations

import zlib

import pytest
from shared_browser import BROWSER

from py_ort.testing.case import Case
from py_ort.testing.results import Results, expectations_of, surprises
from py_ort.testing.runner import RunnerOptions, run_case
from py_ort.testing.sources import onnx_node

KNOWN = expectations_of("onnx-node", "webgpu", fallback=False)
OPTIONS = RunnerOptions(("webgpu", "wasm"), fallback=False, browser=BROWSER)
#: One of so many.
PART = 6

ALL = onnx_node.cases()
CASES = [case for case in ALL if zlib.crc32(case.id.encode()) % PART == 0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_node_case(case: Case) -> None:
    outcome = run_case(case, OPTIONS)
    known = {case.id: KNOWN[case.id]} if case.id in KNOWN else {}
    assert not surprises(Results({case.id: outcome}), known)


def test_the_part_is_fair() -> None:
    """It has its share of what WebGPU runs, and expectations are about cases that there are."""
    assert set(KNOWN) <= {case.id for case in ALL}
    passing = len(CASES) - len(KNOWN.keys() & {case.id for case in CASES})
    assert 0.8 < passing * PART / (len(ALL) - len(KNOWN)) < 1.2

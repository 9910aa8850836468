"""Operator cases of our own, in onnxruntime-web's format (tests/operators), on each provider."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from native import native_session
from shared_browser import BROWSER

from py_ort.testing.case import difference
from py_ort.testing.results import surprises
from py_ort.testing.runner import RunnerOptions, run_cases
from py_ort.testing.sources import load_cases, ort_web

FOLDER = Path(__file__).parents[1] / "operators"
CASES = load_cases(f"ort-web:{FOLDER}")


def test_there_are_enough() -> None:
    assert len({case.group for case in CASES}) >= 90


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_what_native_onnxruntime_gives(provider: str) -> None:
    results = run_cases(CASES, RunnerOptions((provider,), browser=BROWSER, jobs=1))
    assert not (found := surprises(results)), "\n".join(found)
    assert results.count("passed") == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_files_are_right(case) -> None:
    """With the installed native onnxruntime."""
    model = onnx.load_from_string(case.model_bytes())
    for opset in model.opset_import:  # it may not know the newest
        opset.version = min(opset.version, 21)
    session = native_session(model)
    for data in case.data_sets:
        for actual, expected in zip(session.run(None, data.feeds), data.outputs, strict=True):
            assert not difference(actual, expected, ort_web.TOLERANCE[""])

"""ONNX's node cases in Firefox and WebKitGTK, where these are installed: a sample; `make browsers` runs all of them."""

from __future__ import annotations

import os
import shutil

import pytest

from py_ort import BrowserOptions
from py_ort.browser import find
from py_ort.testing.results import expectations_of, surprises
from py_ort.testing.runner import RunnerOptions, run_cases
from py_ort.testing.sources import load_cases, sampled

WHOLE = os.environ.get("PY_ORT_ALL_CASES") == "1"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("browser", ["firefox", "webkit"])
def test_on_wasm(browser: str) -> None:
    """What fails is what fails in Chromium."""
    if not find.installed(browser) or (browser == "webkit" and not shutil.which("Xvfb")):
        pytest.skip(f"{browser} is not installed")
    cases = sampled(load_cases("onnx-node"), 1 if WHOLE else 40)
    options = RunnerOptions(("wasm",), browser=BrowserOptions(browser=browser), jobs=0 if WHOLE else 1)
    results = run_cases(cases, options)
    ids = {case.id for case in cases}
    results.known = {name: entry for name, entry in expectations_of("onnx-node", "wasm").items() if name in ids}
    assert not (found := surprises(results)), "\n".join(found)
    assert results.count("passed") >= (1840 if WHOLE else 40)

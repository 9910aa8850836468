"""Models on WebGL in Firefox and WebKitGTK, against native onnxruntime; `make browsers` runs all, and Chromium."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from native import native_session
from test_counted_launches import CASES, model_of

from py_ort import BrowserOptions, InferenceSession
from py_ort.browser import find

WHOLE = os.environ.get("PY_ORT_ALL_CASES") == "1"
BROWSERS = ["firefox", "webkit", "chromium"] if WHOLE else ["firefox", "webkit"]


@pytest.fixture(scope="module", params=BROWSERS)
def elsewhere(request: pytest.FixtureRequest) -> BrowserOptions:
    """A browser with WebGL."""
    if not find.installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    if request.param != "chromium" and not shutil.which("Xvfb"):
        pytest.skip("Xvfb is not installed")
    return BrowserOptions(browser=request.param, webgpu="software", idle_timeout=600)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "shape"), [case[:2] for case in CASES.values()], ids=CASES)
def test_equals_onnxruntime(elsewhere: BrowserOptions, name: str, shape: tuple[int, ...]) -> None:
    """All is on WebGL but shape arithmetic, and later runs compile nothing."""
    if not WHOLE and "cls" not in name:
        pytest.skip("make browsers runs it")
    data = model_of(name)
    native = native_session(data)
    rng = np.random.default_rng(0)
    with InferenceSession(data, providers=["webgl"], browser=elsewhere) as session:
        strays = [node for node in session.placement().nodes if node.provider != "webgl"]
        assert {node.reason for node in strays} <= {"shape arithmetic"}
        for _ in range(2):
            feeds = {
                x.name: rng.integers(0, 2, shape)
                if x.type == "tensor(int64)"
                else rng.standard_normal(shape).astype(np.float32)
                for x in native.get_inputs()
            }
            for found, wanted in zip(session.run(None, feeds), native.run(None, feeds), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * max(1, float(np.abs(wanted).max())))
        assert session.stats()["last_run"]["counters"]["pipelines"] == 0

"""ONNX's node cases in Firefox, WebKitGTK and QtWebEngine, and float16 in shaders: samples.

`make browsers` runs all of them.
"""

import os

import lavapipe
import onnx
import pytest
from installed_browsers import need_browser

from py_ort import BrowserOptions
from py_ort.browser import find
from py_ort.runtime.probe import probe
from py_ort.testing.case import Case
from py_ort.testing.results import expectations_of, surprises
from py_ort.testing.runner import RunnerOptions, run_cases
from py_ort.testing.sources import load_cases, sampled

WHOLE = os.environ.get("PY_ORT_ALL_CASES") == "1"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("browser", ["firefox", "webkit", "qtwebengine"])
def test_on_wasm(browser):
    """The cases that fail are those that fail in Chromium."""
    need_browser(browser)
    cases = sampled(load_cases("onnx-node"), 1 if WHOLE else 40)
    passed = run(cases, RunnerOptions(("wasm",), browser=BrowserOptions(browser=browser), jobs=0 if WHOLE else 1))
    assert passed >= (1840 if WHOLE else 40)


def run(cases: list[Case], options: RunnerOptions) -> int:
    """Run cases, of which the known failures must fail; return the number of passed ones."""
    results = run_cases(cases, options)
    ids = {case.id for case in cases}
    known = expectations_of("onnx-node", options.providers[0], options.fallback)
    results.known = {name: entry for name, entry in known.items() if name in ids}
    assert not (found := surprises(results)), "\n".join(found)
    return results.count("passed")


@pytest.fixture(scope="module")
def firefox():
    """One with WebGPU."""
    return BrowserOptions(browser=need_browser("firefox", webgpu=True), idle_timeout=600)


@pytest.fixture(scope="module", params=["firefox", "chromium"])
def with_float16(request):
    """A browser whose shaders have float16; Chromium replaces a missing Firefox."""
    if request.param == "firefox":
        options = BrowserOptions(browser=need_browser("firefox", webgpu=True), idle_timeout=600)
    elif find.installed("firefox") and not WHOLE:
        pytest.skip("Firefox runs them")
    else:
        try:
            env = lavapipe.environment()
        except lavapipe.Missing as e:
            pytest.skip(f"no adapter in software that has float16 in shaders: {e}")
        options = BrowserOptions(webgpu="software", env=env, idle_timeout=600)
    found = probe(options)
    assert found["adapter"], found["no_adapter"]  # there is a driver, so there must be an adapter
    if "shader-f16" not in found["features"]:
        pytest.skip(f"no float16 in shaders: {found['adapter']}")
    return options


def has_float16(case: Case) -> bool:
    graph = onnx.load_from_string(case.model_bytes()).graph
    return any(v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for v in (*graph.input, *graph.output))


@pytest.mark.timeout(1800)
def test_on_webgpu(firefox):
    """The cases that fail in Firefox are those that fail in Chromium. All is on the GPU."""
    cases = [case for case in load_cases("onnx-node") if not has_float16(case)]
    chosen = sampled(cases, 1 if WHOLE else 100)
    passed = run(chosen, RunnerOptions(("webgpu",), fallback=False, browser=firefox, jobs=0 if WHOLE else 1))
    assert passed >= (1400 if WHOLE else len(chosen) // 2)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("browser", ["firefox", "webkit"])
def test_on_webgl(browser):
    """Results are right wherever WebGL runs them; wasm runs the others."""
    need_browser(browser, display=True)
    cases = sampled(load_cases("onnx-node"), 1 if WHOLE else 100)
    passed = run(cases, RunnerOptions(("webgl",), browser=BrowserOptions(browser=browser), jobs=0 if WHOLE else 1))
    assert passed >= (1840 if WHOLE else 15)


@pytest.mark.timeout(1800)
def test_float16_in_shaders(with_float16):
    """Shaders compute float16; nodes of these cases without a kernel run on wasm."""
    cases = [case for case in load_cases("onnx-node") if has_float16(case)]
    chosen = sampled(cases, 1 if WHOLE else 12)
    passed = run(chosen, RunnerOptions(("webgpu",), browser=with_float16, jobs=0 if WHOLE else 1))
    assert passed >= (110 if WHOLE else len(chosen) // 2)

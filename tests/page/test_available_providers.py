"""`get_available_providers` and similar functions return a browser's providers, which is asked once."""

from dataclasses import replace
from typing import Any

import pytest
from shared_browser import BROWSER

import py_ort
from py_ort import BrowserOptions
from py_ort.runtime import local_browser
from py_ort.runtime.available import of_browser

CPU = ["CPUExecutionProvider"]
WEBGL = ["WebGLExecutionProvider", *CPU]
BOTH = ["WebGpuExecutionProvider", *WEBGL]


@pytest.fixture
def probes(monkeypatch):
    """The browsers that were probed."""
    asked = []

    def probe(options: BrowserOptions, **more: Any) -> dict[str, Any]:
        asked.append(options)
        return there(options, **more)

    there = local_browser.probe
    monkeypatch.setattr(local_browser, "probe", probe)
    monkeypatch.delenv("PY_ORT_PROBE")
    local_browser._asked.cache_clear()
    return asked


def test_a_browser_with_an_adapter(probes):
    told = of_browser(BROWSER, None)
    assert (told["get_available_providers"](), told["get_device"]()) == (BOTH, "CPU-WEBGPU")
    assert "chromium" in told["get_build_info"]().lower() and "swiftshader" in told["get_build_info"]()
    assert probes == [BROWSER]


def test_a_browser_without_an_adapter(probes):
    """WebGL runs there in software."""
    off = replace(BROWSER, webgpu="off", flags=("--enable-unsafe-swiftshader",), idle_timeout=0.0)
    with py_ort.install_as_onnxruntime(browser=off) as installed:
        assert (installed.module.get_available_providers(), installed.module.get_device()) == (WEBGL, "CPU-WEBGL")
        assert "adapter: none" in installed.module.get_build_info()
    assert probes == [off]


def test_an_adapter_on_the_cpu_is_no_hardware(probes, monkeypatch):
    found = {"browser": "b", "adapter": "a", "software": True, "devices": {"webgl": {}, "webnn": {"none": "none"}}}
    monkeypatch.setattr(local_browser, "probe", lambda options, close, others: found)
    assert local_browser.LocalBrowser(BrowserOptions(webgpu="hardware")).providers() == WEBGL
    assert local_browser.LocalBrowser(BrowserOptions(webgpu="auto")).providers() == BOTH


def test_no_browser_at_all(probes, caplog):
    told = of_browser("/nowhere/chromium", None)
    assert told["get_available_providers"]() == CPU
    assert "no page can be asked" in caplog.text and "/nowhere/chromium" in caplog.text


def test_nobody_is_asked_where_that_is_not_wanted(probes, monkeypatch):
    monkeypatch.setenv("PY_ORT_PROBE", "0")
    assert py_ort.get_available_providers() == py_ort.get_all_providers()
    assert py_ort.get_device() == "CPU-WEBGPU"
    assert py_ort.get_build_info().endswith("for browsers")
    assert probes == []

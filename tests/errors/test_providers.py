"""Providers that cannot run here: skipped with a reason, or an error that lists the reasons."""

import logging
import re

import numpy as np
import pytest
import small_models
from graphs import parse

from py_ort import BrowserOptions, SessionOptions
from py_ort.browser.browser_options import has_gpu
from py_ort.browser.loop import loop_thread
from py_ort.exceptions import EPFail, InvalidArgument, NoAdapter, PyOrtError
from py_ort.runtime.devices import Device, ask_for_device

#: A Chromium without WebGPU.
WITHOUT = BrowserOptions(webgpu="off", idle_timeout=300)


def test_no_adapter_is_an_error_that_names_the_flags(new_session):
    with pytest.raises(NoAdapter) as caught:
        new_session(small_models.add(), providers=["webgpu"], browser=WITHOUT)
    assert "--use-webgpu-adapter=swiftshader" in str(caught.value) and "PY_ORT_WEBGPU" in str(caught.value)


def test_no_adapter_and_wasm_goes_on_with_a_warning(new_session, caplog):
    with caplog.at_level(logging.WARNING, "py_ort"):
        session = new_session(small_models.add(), providers=["webgpu", "wasm"], browser=WITHOUT)
    assert session.get_providers() == ["CPUExecutionProvider"]
    (warning,) = [r.getMessage() for r in caplog.records if r.name == "py_ort" and r.levelno == logging.WARNING]
    assert "webgpu" in warning and "swiftshader" in warning
    assert session.placement().counts() == {"wasm": 1}


@pytest.mark.parametrize("entry", ["session.require_providers", "session.disable_cpu_ep_fallback"])
def test_no_adapter_is_an_error_where_wasm_must_not_stand_in(new_session, entry):
    options = SessionOptions()
    options.add_session_config_entry(entry, "1")
    with pytest.raises(NoAdapter, match=entry) as caught:
        new_session(small_models.add(), options, ["webgpu", "wasm"], browser=WITHOUT)
    assert isinstance(caught.value, EPFail) and caught.value.provider == "webgpu" and "swiftshader" in str(caught.value)
    session = new_session(small_models.add(), options, ["webgpu", "wasm"])
    assert session.placement().left_out == {} and session.placement().counts() == {"webgpu": 1, "wasm": 0}


def test_all_providers_are_required_or_one_that_is_not_wasm_will_do(new_session):
    required, no_fallback = SessionOptions(), SessionOptions()
    required.add_session_config_entry("session.require_providers", "1")
    no_fallback.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    names = ["CUDAExecutionProvider", "webgpu"]
    with pytest.raises(EPFail, match="CUDAExecutionProvider: it runs natively only"):
        new_session(small_models.add(), required, names)
    session = new_session(small_models.add(), no_fallback, names)
    assert list(session.placement().left_out) == ["CUDAExecutionProvider"]
    # As in native onnxruntime, if only the CPU remains.
    with pytest.raises(EPFail, match=r"disable_cpu_ep_fallback.*CUDAExecutionProvider"):
        new_session(small_models.add(), no_fallback, ["CUDAExecutionProvider", "cpu"])


def test_the_entry_is_0_or_1(new_session):
    options = SessionOptions()
    options.add_session_config_entry("session.require_providers", "true")
    with pytest.raises(InvalidArgument, match=r"session.require_providers.*'true'"):
        new_session(small_models.add(), options)


def test_providers_without_kernels_are_left_out(new_session, caplog):
    with caplog.at_level(logging.WARNING, "py_ort"):
        session = new_session(small_models.add(), providers=["webnn", "CUDAExecutionProvider", "cpu"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "webnn" in caplog.text and "CUDAExecutionProvider" in caplog.text
    assert set(session.placement().left_out) == {"webnn", "CUDAExecutionProvider"}


def test_none_left_lists_each_reason(new_session):
    with pytest.raises(EPFail) as caught:
        new_session(small_models.add(), providers=["webnn", "CUDAExecutionProvider"])
    for word in ("webnn", "CUDAExecutionProvider", "natively"):
        assert word in str(caught.value)


@pytest.mark.parametrize("providers, options", [(["webgpuu"], None), ("webgpu", None), (["webgpu"], [{}, {}])])
def test_names_and_options_that_are_wrong(new_session, providers, options):
    with pytest.raises(InvalidArgument):
        new_session(small_models.add(), providers=providers, provider_options=options)


def test_both_families_of_names(new_session):
    session = new_session(small_models.add(), providers=["JsExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["WebGpuExecutionProvider", "CPUExecutionProvider"]
    assert session.placement().counts()["webgpu"] == 1


def test_the_hint_is_what_the_launcher_does():
    options = BrowserOptions(webgpu="software")
    line = options.command_line()
    flags = re.findall(r"--[\w=-]+", options.no_adapter_hint("webgpu"))
    assert flags and all(flag in line for flag in flags)


@pytest.mark.skipif(has_gpu(), reason="there is a GPU here")
def test_hardware_that_is_not_there(new_session):
    """Chromium's answer depends on the Vulkan drivers: no adapter, one on the CPU, or no answer, ever."""
    options = BrowserOptions(webgpu="hardware", launch_timeout=15, idle_timeout=0)
    with pytest.raises(NoAdapter, match="What helps: a GPU and its driver; or webgpu='software'") as caught:
        new_session(small_models.add(), providers=["webgpu"], browser=options)
    says = ("requestAdapter", "software adapter here", "no adapter")
    assert any(words in str(caught.value) for words in says)
    session = new_session(small_models.add(), providers=["webgpu", "wasm"], browser=options)
    assert session.placement().counts() == {"wasm": 1} and "webgpu" in session.placement().left_out


def test_an_adapter_on_the_cpu_is_no_hardware(new_session):
    """A device opened by other sessions does not count for those that require a GPU."""
    software = BrowserOptions(webgpu="software", flags=("--py-ort-test=hardware",), idle_timeout=0)
    session = new_session(small_models.add(), providers=["webgpu"], browser=software)
    lease = session._opened.runtime.lease
    told = {"hardware": "required", "timeoutMs": 10_000}
    for device_id in (0, 1):
        with pytest.raises(NoAdapter, match=r"only a software adapter here \(google swiftshader\)"):
            loop_thread().call(ask_for_device(lease.page, Device("webgpu", device_id), told, 30))
    assert session._opened.runtime.device["software"]


@pytest.mark.parametrize(("providers", "named"), [(["webgpu", "wasm"], "webgpu"), (["wasm"], "wasm")])
def test_an_error_of_a_kernel_names_the_provider_as_placements_do(new_session, providers, named):
    source = parse("g (float[N,3] a, float[M,3] b) => (float[N,K] y) { y = MatMul(a, b) }")
    session = new_session(source.SerializeToString(), providers=providers)
    assert {node.provider for node in session.placement().nodes} == {named}
    with pytest.raises(PyOrtError) as caught:
        session.run(None, {"a": np.ones((2, 3), np.float32), "b": np.ones((4, 3), np.float32)})
    assert (caught.value.provider, caught.value.op_type) == (named, "MatMul")

"""Providers that cannot run here: left out with a reason, or an error that lists the reasons."""

import logging
import re

import pytest
import small_models

from py_ort import BrowserOptions
from py_ort.exceptions import EPFail, InvalidArgument, NoAdapter

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


def test_providers_without_kernels_are_left_out(new_session, caplog):
    with caplog.at_level(logging.WARNING, "py_ort"):
        session = new_session(small_models.add(), providers=["webnn", "CUDAExecutionProvider", "cpu"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "webnn" in caplog.text and "CUDAExecutionProvider" in caplog.text


def test_none_left_lists_each_reason(new_session):
    with pytest.raises(EPFail) as caught:
        new_session(small_models.add(), providers=["webgl", "webnn", "CUDAExecutionProvider"])
    for word in ("webgl", "webnn", "CUDAExecutionProvider", "natively"):
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
    flags = re.findall(r"--[\w=-]+", options.no_adapter_hint())
    assert flags and all(flag in line for flag in flags)

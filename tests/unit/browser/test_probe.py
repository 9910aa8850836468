"""Questions to a browser before it is listed."""

import json

import fake_page
import pytest

from py_ort import BrowserOptions
from py_ort.browser import starting
from py_ort.runtime.probe import probe
from py_ort.schema.gen.Error import ErrorT
from py_ort.schema.gen.ErrorCode import ErrorCode


@pytest.mark.parametrize(("webgpu", "hardware"), [("hardware", "expected"), ("software", None)])
def test_a_gpu_that_is_asked_for_is_waited_for(monkeypatch, webgpu, hardware):
    """The first answer may be no adapter, while the GPU process starts."""
    told = []

    def garble(request, body, payload):
        if request.kind == "OpenDevice":
            told.append(json.loads(request.body.options))
        return fake_page.honestly(request, body, payload)

    page = fake_page.FakePage(garble)
    monkeypatch.setattr(starting, "launcher_for", lambda options: page.launcher())
    found = probe(BrowserOptions(webgpu=webgpu, flags=(f"--fake-{webgpu}",)), timeout=20)
    assert found["adapter"] == "nobody"
    assert [options.get("hardware") for options in told] == [hardware]


@pytest.mark.parametrize("in_page", [True, False])
def test_devices_in_the_pages_own_thread(monkeypatch, in_page):
    """A frame is opened for what the worker lacks, once; a provider that frames do not help is asked for once."""
    scripts, asked = [], []

    def host(request, body, payload):
        if request.kind == "OpenWorker":
            scripts.append(request.body.script)
        return fake_page.honestly(request, body, payload)

    def garble(request, body, payload):
        if request.kind == "OpenDevice":
            asked.append(request.body.provider)
            if request.body.provider != "webgl" or not (scripts and in_page):
                body = ErrorT()
                body.code, body.message = ErrorCode.no_adapter, "there is none"
        return fake_page.honestly(request, body, payload)

    page = fake_page.FakePage(garble, host)
    monkeypatch.setattr(starting, "launcher_for", lambda options: page.launcher())
    found = probe(BrowserOptions(webgpu="off", flags=(f"--fake-page-{in_page}",)), timeout=20, others=True)
    assert scripts == ["index.html"] and sorted(asked) == ["webgl", "webgl", "webgpu", "webnn"]
    assert found["devices"]["webgl"].get("vendor") == ("nobody" if in_page else None)
    assert found["devices"]["webnn"] == {"none": "there is none"} and found["adapter"] is None

"""Questions to a browser before it is listed."""

import json

import fake_page
import pytest

from py_ort import BrowserOptions
from py_ort.browser import starting
from py_ort.runtime.probe import probe


@pytest.mark.parametrize(("webgpu", "hardware"), [("hardware", "expected"), ("software", None)])
def test_a_gpu_that_is_asked_for_is_waited_for(monkeypatch, webgpu, hardware):
    """The first answer may be none, while the GPU process starts."""
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

"""What the flags that Chromium is started with are for."""

from __future__ import annotations

import sys

import processes
import pytest
import small_models

from py_ort import BrowserOptions

pytestmark = pytest.mark.browser


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_only_our_page_is_loaded(new_session, launcher):
    """No pages of the browser's own window."""
    flag = f"--started-as={launcher}"
    options = BrowserOptions(webgpu="off", launcher=launcher, flags=flag, idle_timeout=0)
    session = new_session(small_models.add(), providers=["wasm"], browser=options)
    assert session.placement().counts() == {"wasm": 1}
    lines = processes.command_lines()
    pages = [lines[pid][1] for pid in processes.children(flag, "renderer")]
    assert pages and not [line for line in pages if "webui" in line]

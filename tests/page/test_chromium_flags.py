"""The reasons for the flags with which Chromium is started."""

from __future__ import annotations

import sys
import time

import numpy as np
import processes
import pytest
import small_models
from shared_browser import BROWSER

from py_ort import BrowserOptions
from py_ort.user_kernels import UserKernel

#: Writes the contents of workgroup memory that was not written before.
FOUND = """
var<workgroup> held: array<f32, COUNT>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
  if (load_x(i) > 2.0) { held[i] = load_x(i); }
  workgroupBarrier();
  var sum = load_x(i);
  for (var k = i; k < COUNT; k += 64) { sum += held[k]; }
  store_y(i, sum);
}
"""


def seconds_with(count: int) -> float:
    kernel = UserKernel(
        name=f"t::Found{count}", shape="x.shape", wgsl=FOUND.replace("COUNT", str(count)), workgroups=["1"],
        reference=lambda x: x,
    )  # fmt: skip
    began = time.monotonic()
    assert kernel.check(np.linspace(0, 1, 64, dtype=np.float32), browser=BROWSER) == 0
    return time.monotonic() - began


def test_workgroup_memory_is_zeros_and_compiles_at_once():
    """A store for each element of 16 KiB would take SwiftShader seconds."""
    seconds_with(32)
    assert seconds_with(4096) < 5 * seconds_with(64) + 0.2


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

"""Chromium's sandbox: on for every user who can have it; otherwise a warning, once."""

import tempfile
from pathlib import Path

import pytest
from another_user import AnotherUser

#: Two sessions; then the confinement of their browser's processes.
SCRIPT = """
import json
import numpy as np
import processes, small_models
from py_ort import BrowserOptions, InferenceSession

launcher, provider, flag = "{launcher}", "{provider}", f"--py-ort-test={{__name__}}"
options = BrowserOptions(launcher=launcher, webgpu="software", flags=(flag,))
feeds = {{"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}}
sums = []
for _ in range(2):
    with InferenceSession(small_models.add(), providers=[provider], browser=options) as session:
        sums += [session.get_providers()[0], session.run(None, feeds)[0].tolist()]
main = processes.command_lines()[processes.browser_process(flag)][1]
seccomp = [processes.status(pid)["Seccomp"] for pid in processes.children(flag, "renderer")]
print(json.dumps([sums, "--no-sandbox" in main, seccomp]))
"""


@pytest.fixture(scope="module")
def nobody():
    # Not in pytest's own folders: other users cannot read these.
    with tempfile.TemporaryDirectory() as folder:
        yield AnotherUser(Path(folder))


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_on_for_a_user(nobody, launcher, provider):
    (sums, without, seccomp), errors = nobody.run(SCRIPT.format(launcher=launcher, provider=provider))
    name = {"wasm": "CPUExecutionProvider", "webgpu": "WebGpuExecutionProvider"}[provider]
    assert sums == [name, [[1, 1, 1]]] * 2
    assert not without
    assert seccomp and set(seccomp) == {"2"}, "each renderer is filtered"
    assert "sandbox" not in errors


@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_off_with_a_warning_where_the_kernel_forbids_it(nobody, launcher):
    (sums, without, seccomp), errors = nobody.run(SCRIPT.format(launcher=launcher, provider="wasm"), namespaces=False)
    assert sums[1] == sums[3] == [[1, 1, 1]]
    assert without and set(seccomp) == {"0"}
    assert errors.count("Chromium runs without its sandbox") == 1
    assert "user namespaces" in errors and "What helps" in errors


@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_never_without_it_if_so_wanted(nobody, launcher):
    script = f"""
import json, small_models
from py_ort import InferenceSession, exceptions
try:
    InferenceSession(small_models.add(), providers=["wasm"], launcher="{launcher}")
except exceptions.BrowserCrashed as e:
    print(json.dumps(str(e)))
"""
    message, _ = nobody.run(script, namespaces=False, PY_ORT_SANDBOX="1")
    assert "sandbox=True" in message and "user namespaces" in message

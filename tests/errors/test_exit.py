"""What is left of a browser when Python ends: nothing, neither processes nor folders."""

import sys
import tempfile
import time
import uuid
from pathlib import Path

import processes
import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

SCRIPT = """
import sys, threading, time
import numpy as np
import small_models
from py_ort import BrowserOptions, InferenceSession
from py_ort.browser.launchers import process

if {alone}:
    process.dies_with_us = lambda environment: []  # as on systems without PR_SET_PDEATHSIG
options = BrowserOptions(launcher="{launcher}", webgpu="off", flags=("{flag}",), sandbox=False)

def make():
    global session
    session = InferenceSession(small_models.add(), providers=["wasm"], browser=options)

how = "{how}"
if how == "in the middle":
    threading.Thread(target=make, daemon=True).start()
    while not any(line.find("{flag}") > 0 for _, line in __import__("processes").command_lines().values()):
        time.sleep(0.01)
else:
    make()
    session.run(None, {{"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}})
print("made", flush=True)
"""


@linux
@pytest.mark.parametrize("how", ["at the end", "in the middle"])
@pytest.mark.parametrize("launcher, alone", [("playwright", False), ("process", False), ("process", True)])
def test_nothing_is_left(launcher, alone, how):
    flag = f"--py-ort-test={uuid.uuid4().hex}"
    # A short path: Chromium has a socket there.
    with tempfile.TemporaryDirectory() as temporary:
        script = SCRIPT.format(launcher=launcher, flag=flag, alone=alone, how=how)
        done = processes.python(script, TMPDIR=temporary)
        assert done.stdout == "made\n", done.stderr
        assert done.returncode == 0
        for _ in range(100):
            if not left(flag, Path(temporary)):
                break
            time.sleep(0.1)
        assert left(flag, Path(temporary)) == []


def left(flag: str, folder: Path) -> list[str]:
    lines = [line for _, line in processes.command_lines().values() if flag in line]
    return lines + sorted(path.name for path in folder.glob("py_ort-*"))

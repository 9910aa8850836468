"""What is left of a browser when Python ends: nothing, neither processes nor folders."""

import subprocess
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


INTERRUPTED = """
import atexit, os, signal, sys, threading
from py_ort.cli import main

class Kept:
    def __del__(self):
        print("taken apart")

kept = Kept()
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.argv = ["py-ort", "browsers"]
threading.Timer(0.1, lambda: atexit.register(print, "closed")).start()
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_an_interrupted_command_does_not_take_modules_apart():
    """What closes browsers is called, and then it ends."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130, done.stderr
    assert "closed" in done.stdout and "taken apart" not in done.stdout
    assert "Traceback" not in done.stderr

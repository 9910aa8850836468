"""What is left of a browser when Python ends: nothing, neither processes nor folders."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import relu_cases
import small_models
from devtools import chromium_with_devtools

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
import small_models
from py_ort import BrowserOptions, InferenceSession

options = BrowserOptions(launcher="{launcher}", webgpu="off", flags=("{flag}",), sandbox=False)

def make():
    global session
    session = InferenceSession(small_models.add(), providers=["wasm"], browser=options)

how = "{how}"
if how in ("in the middle", "os._exit in the middle"):
    threading.Thread(target=make, daemon=True).start()
    while not any(line.find("{flag}") > 0 for _, line in __import__("processes").command_lines().values()):
        time.sleep(0.01)
else:
    make()
    session.run(None, {{"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}})
print("made", flush=True)
if how.startswith("os._exit"):
    os._exit(0)
elif how.startswith("SIG"):
    if how == "SIGKILL with a child" and not os.fork():
        os.close(1)
        os.close(2)
        time.sleep(30)
        os._exit(0)
    how = how.split()[0]
    os.kill(os.getpid(), getattr(signal, how))
"""
HOWS = ["at the end", "in the middle", "os._exit", "os._exit in the middle", "SIGTERM", "SIGKILL"]


@linux
@pytest.mark.parametrize(
    ("launcher", "how"),
    [*((launcher, how) for launcher in ("playwright", "process") for how in HOWS), ("process", "SIGKILL with a child")],
)
def test_nothing_is_left(launcher, how):
    flag = f"--py-ort-test={uuid.uuid4().hex}"
    # A short path: Chromium has a socket there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        script = SCRIPT.format(launcher=launcher, flag=flag, how=how)
        done = processes.python(script, TMPDIR=temporary)
        assert done.stdout == "made\n", done.stderr
        assert done.returncode == (-getattr(signal, how.split()[0]) if how.startswith("SIG") else 0)
        for _ in range(200):
            if not left(flag, Path(temporary), launcher, how):
                break
            time.sleep(0.1)
        assert left(flag, Path(temporary), launcher, how) == []


def left(flag: str, folder: Path, launcher: str, how: str) -> list[str]:
    lines = [line for _, line in processes.command_lines().values() if flag in line]
    # A browser that Playwright kills while it starts leaves an empty folder of its own.
    pattern = "py_ort-*" if launcher == "playwright" and how.endswith("in the middle") else "*"
    return lines + sorted(path.name for path in folder.glob(pattern))


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


def slow(folder: Path) -> str:
    (folder / "slow.onnx").write_bytes(small_models.slow())
    return str(folder / "slow.onnx")


def cases(folder: Path) -> str:
    for number in range(400):
        relu_cases.write(folder / "cases" / str(number), np.maximum(relu_cases.X, 0))
    return str(folder / "cases")


def kernel(folder: Path) -> str:
    shutil.copy(Path(__file__).parents[2] / "samples/user_kernel.py", folder / "kernel.py")
    return str(folder / "kernel.py")


def project(folder: Path) -> str:
    (folder / "test_slow.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_slow(ort_session, n):\n"
        f"    ort_session({slow(folder)!r})\n    while True: pass\n"
    )
    return str(folder)


#: Commands by name: what they get (a function of the folder makes it), and how many browsers they have at once.
COMMANDS: dict[str, tuple[list[Any], int]] = {
    "run": (["run", slow, "--random", "--runs", 1000], 1),
    "run of a process": (["run", slow, "--random", "--runs", 1000, "--launcher", "process"], 1),
    "compare": (["compare", slow], 1),
    "bench": (["bench", slow, "--runs", 1000], 1),
    "profile": (["profile", slow, "--runs", 1000], 1),
    "tune": (["tune", slow, "--webgpu", "software"], 1),
    "kernel": (["kernel", kernel], 1),
    "browsers": (["browsers"], 1),
    "export": (["export", slow, "-o", "out", "--check", "--browser", "chromium"], 1),
    "serve": (["serve", ".", "--port", 0], 0),
    "conformance": (["conformance", cases, "--jobs", 2], 2),
    "conformance of processes": (["conformance", cases, "--jobs", 2, "--launcher", "process"], 2),
    "fleet": (["conformance", cases, "--jobs", 2, "--remote", "{cdp}", "--remote", "{cdp}"], 0),
    "pytest": (["pytest", project, "-p", "no:cacheprovider"], 1),
    "pytest of workers": (["pytest", project, "-p", "no:cacheprovider", "-n", 2], 2),
}
SIGNALS = ("SIGTERM", "SIGHUP", "SIGKILL")
#: Each command with one of the signals; all of them in `make browsers`.
ENDINGS = [
    (command, name)
    for number, command in enumerate(COMMANDS)
    for at, name in enumerate(SIGNALS)
    if os.environ.get("PY_ORT_ALL_CASES") == "1" or command == "conformance" or at == number % len(SIGNALS)
]


@linux
@pytest.mark.parametrize(("command", "name"), ENDINGS)
def test_nothing_is_left_of_a_command(command: str, name: str, tmp_path: Path) -> None:
    given, browsers = COMMANDS[command]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary, ExitStack() as stack:
        made = [str(each(tmp_path) if callable(each) else each) for each in given]
        if command == "fleet":
            devtools, _ = stack.enter_context(chromium_with_devtools(tmp_path / "profile"))
            made = [each.format(cdp=f"cdp:{devtools}") for each in made]
        ours = [sys.executable, "-m", *([] if command.startswith("pytest") else ["py_ort.cli"]), *made]
        paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
        with (tmp_path / "said").open("w+") as said:
            process = subprocess.Popen(
                ours,
                cwd=tmp_path,
                env={
                    **os.environ,
                    **{"TMPDIR": temporary, "PYTHONPATH": paths, "PY_ORT_CACHE": "1", "XDG_CACHE_HOME": str(tmp_path)},
                },
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
            try:
                found = until_it_runs(process, command, browsers, Path(temporary), said)
                number = getattr(signal, name)
                # A terminal that closes tells all of its processes.
                (os.killpg if name == "SIGHUP" else os.kill)(process.pid, number)
                status = process.wait(60)
            finally:
                process.kill()
            ends_by_itself = name == "SIGKILL" or command.startswith("pytest")
            assert status == (-number if ends_by_itself else 128 + number), (tmp_path / "said").read_text()
        for _ in range(300):
            if not (rest := rest_of(found, Path(temporary), name)):
                break
            time.sleep(0.1)
        assert not rest


def until_it_runs(process: subprocess.Popen[bytes], command: str, browsers: int, folder: Path, said: Any) -> set[int]:
    """Wait until a command has all of its browsers; return the processes that it started."""
    for _ in range(2000):
        assert process.poll() is None, Path(said.name).read_text()
        lines = processes.command_lines()
        found = {process.pid}
        while more := {pid for pid, (parent, _) in lines.items() if parent in found and pid not in found}:
            found |= more
        started = [line for pid, (_, line) in lines.items() if pid in found]
        pages = {line.split("--user-data-dir=")[-1].split()[0] for line in started if "--type=renderer" in line}
        if command == "serve":
            ready = any(folder.glob("py-ort-serve-*")) and "http" in Path(said.name).read_text()
        elif command == "fleet":
            ready = sum("run-driver" in line for line in started) == 2
        else:
            ready = len(pages) >= browsers
        if ready:
            return found - {process.pid}
        time.sleep(0.05)
    raise AssertionError(f"{command} has started nothing: {Path(said.name).read_text()}")


def rest_of(started: set[int], folder: Path, name: str) -> list[str]:
    """Return what is left: processes, and folders of ours; where Python had no time for it, none but those guarded."""
    lines = processes.command_lines()
    running = [lines[pid][1] for pid in started if pid in lines and lines[pid][1]]  # one that has ended has no line
    patterns = ("py_ort-*", "py-ort-*", *(() if name == "SIGKILL" else ("tmp*",)))
    return running + [str(path) for pattern in patterns for path in folder.glob(pattern)]

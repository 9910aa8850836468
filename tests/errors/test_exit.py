"""Nothing is left of a browser when Python ends, neither processes nor folders."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import relu_cases
import small_models
from devtools import chromium_with_devtools

ALL_CASES = os.environ.get("PY_ORT_ALL_CASES") == "1"
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
        time.sleep(0.1)
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
#: All of them in `make browsers`.
SCRIPTS = [
    (launcher, how)
    for number, launcher in enumerate(("playwright", "process"))
    for at, how in enumerate(HOWS)
    if ALL_CASES or at % 2 == number
] + [("process", "SIGKILL with a child")]


@linux
@pytest.mark.parametrize("launcher", ["playwright", "process"])
def test_nothing_is_left(launcher: str) -> None:
    hows = [how for each, how in SCRIPTS if each == launcher]
    assert at_once(end_script, [(launcher, how) for how in hows]) == {how: [] for how in hows}


def at_once(function: Callable[..., tuple[str, Any]], cases: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Run a few cases at a time: they mostly wait."""
    with ThreadPoolExecutor(4) as threads:
        return dict(threads.map(lambda case: function(*case), cases))


def end_script(launcher: str, how: str) -> tuple[str, list[str]]:
    """Run the script and return what remains."""
    flag = f"--py-ort-test={uuid.uuid4().hex}"
    # A short path: Chromium has a socket there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        done = processes.python(SCRIPT.format(launcher=launcher, flag=flag, how=how), TMPDIR=temporary)
        assert done.stdout == "made\n", (how, done.stderr)
        assert done.returncode == (-getattr(signal, how.split()[0]) if how.startswith("SIG") else 0), how

        def rest() -> list[str]:
            lines = [line for _, line in processes.command_lines().values() if flag in line]
            return lines + sorted(path.name for path in Path(temporary).glob("*"))

        return how, nothing_soon(rest)


def nothing_soon(rest: Callable[[], list[str]]) -> list[str]:
    """Return the remains after up to 30 s, or as soon as there are none."""
    until = time.monotonic() + 30
    while (found := rest()) and time.monotonic() < until:
        time.sleep(0.2)
    return found


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
    """Browsers are closed first; then Python ends."""
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


def tree(folder: Path) -> str:
    """Three models, each in a folder, which take some time to compile."""
    for number in range(3):
        (folder / "tree" / str(number)).mkdir(parents=True)
        shutil.copy(slow(folder), folder / "tree" / str(number) / "slow.onnx")
    return str(folder / "tree")


def project(folder: Path) -> str:
    (folder / "test_slow.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_slow(ort_session, n):\n"
        f"    ort_session({slow(folder)!r})\n    while True: pass\n"
    )
    return str(folder)


#: Commands by name: their arguments (made by a function of the folder), and their number of browsers at once.
COMMANDS: dict[str, tuple[list[Any], int]] = {
    "run": (["run", slow, "--random", "--runs", 1000], 1),
    "run of a process": (["run", slow, "--random", "--runs", 1000, "--launcher", "process"], 1),
    "compare": (["compare", slow], 1),
    "bench": (["bench", slow, "--runs", 1000], 1),
    "profile": (["profile", slow, "--runs", 1000], 1),
    "tune": (["tune", slow, "--webgpu", "software"], 1),
    "kernel": (["kernel", kernel], 1),
    "browsers": (["browsers", "--webgpu", "hardware", "--browser", "chromium"], 1),  # asks repeatedly
    "export": (["export", slow, "-o", "out", "--check", "--browser", "chromium"], 1),
    "export of a folder": (["export", tree, "-o", "out"], 0),
    "serve": (["serve", ".", "--port", 0], 0),
    "conformance": (["conformance", cases, "--jobs", 2], 2),
    "conformance of processes": (["conformance", cases, "--jobs", 2, "--launcher", "process"], 2),
    "fleet": (["conformance", cases, "--jobs", 2, "--remote", "{cdp}", "--remote", "{cdp}"], 0),
    "pytest": (["pytest", project, "-p", "no:cacheprovider"], 1),
    "pytest of workers": (["pytest", project, "-p", "no:cacheprovider", "-n", 2], 2),
}
SIGNALS = ("SIGTERM", "SIGHUP", "SIGKILL", "SIGINT")
#: Each command with one of the signals; all of them in `make browsers`.
ENDINGS = [
    (command, name)
    for number, command in enumerate(COMMANDS)
    for at, name in enumerate(SIGNALS)
    if ALL_CASES or at == number % len(SIGNALS)
]


@linux
@pytest.mark.parametrize("first", range(0, len(ENDINGS), 5), ids=lambda first: ENDINGS[first][0])
def test_nothing_is_left_of_commands(first: int, tmp_path: Path) -> None:
    some = ENDINGS[first : first + 5]
    cases = [(*each, tmp_path / str(number)) for number, each in enumerate(some)]
    assert at_once(end_command, cases) == {f"{command}, {name}": [] for command, name in some}


def end_command(command: str, name: str, folder: Path) -> tuple[str, list[str]]:
    """End a command by a signal, and return what remains."""
    folder.mkdir()
    given, browsers = COMMANDS[command]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary, ExitStack() as stack:
        made = [str(each(folder) if callable(each) else each) for each in given]
        if command == "fleet":
            devtools, _ = stack.enter_context(chromium_with_devtools(folder / "profile"))
            made = [each.format(cdp=f"cdp:{devtools}") for each in made]
        ours = [sys.executable, "-m", *([] if command.startswith("pytest") else ["py_ort.cli"]), *made]
        paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
        with (folder / "said").open("w+") as said:
            process = subprocess.Popen(
                ours,
                cwd=folder,
                env={
                    **os.environ,
                    **{"TMPDIR": temporary, "PYTHONPATH": paths, "PY_ORT_CACHE": "1", "XDG_CACHE_HOME": str(folder)},
                },
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
            try:
                found = until_it_runs(process, command, browsers, Path(temporary), said)
                number = getattr(signal, name)
                # A terminal signals all of its processes, when it closes and by Ctrl-C.
                (os.killpg if name in ("SIGHUP", "SIGINT") else os.kill)(process.pid, number)
                status = process.wait(60)
            finally:
                process.kill()
        if command.startswith("pytest"):
            expected = 2 if name == "SIGINT" else -number
        else:
            expected = -number if name == "SIGKILL" else 128 + number
        assert status == expected, (command, name, (folder / "said").read_text())
        return f"{command}, {name}", nothing_soon(lambda: rest_of(found, Path(temporary), name))


def until_it_runs(process: subprocess.Popen[bytes], command: str, browsers: int, folder: Path, said: Any) -> set[int]:
    """Wait until a command has all of its browsers; return the processes that it started."""
    for _ in range(500):
        assert process.poll() is None, (command, Path(said.name).read_text())
        lines = processes.command_lines()
        found = {process.pid}
        while more := {pid for pid, (parent, _) in lines.items() if parent in found and pid not in found}:
            found |= more
        started = [line for pid, (_, line) in lines.items() if pid in found]
        pages = {line.split("--user-data-dir=")[-1].split()[0] for line in started if "--type=renderer" in line}
        if command == "serve":
            ready = any(folder.glob("py-ort-serve-*")) and "http" in Path(said.name).read_text()
        elif command == "export of a folder":
            ready = any("compile_worker" in line for line in started)
        elif command == "fleet":
            ready = sum("run-driver" in line for line in started) == 2
        else:
            ready = len(pages) >= browsers
        if ready:
            return found - {process.pid}
        time.sleep(0.2)
    raise AssertionError(f"{command} has started nothing: {Path(said.name).read_text()}")


def rest_of(started: set[int], folder: Path, name: str) -> list[str]:
    """Return the remains: processes, and folders, if Python had time to remove its own."""
    lines = processes.command_lines()
    running = [lines[pid][1] for pid in started if pid in lines and lines[pid][1]]  # an ended one has no line
    kept = ("pytest-of-", *(("tmp",) if name == "SIGKILL" else ()))
    return running + [path.name for path in folder.glob("[!.]*") if not path.name.startswith(kept)]

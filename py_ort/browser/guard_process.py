"""Runs a program until it ends, or the process that started this script ends or says so; then removes a folder.

A script for `guard.py`; it imports only Python's own modules. Its argument is the folder. The first line of stdin is
the program, as JSON. Stdin ends with the other process.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any

#: Seconds for a program to end before it is killed.
_PATIENCE = 3.0


def main(folder: str) -> int:
    """Return the program's status, 128 and the number for a signal."""
    events: queue.SimpleQueue[bytes] = queue.SimpleQueue()  # signal handlers may put items into it
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: events.put(b""))
    threading.Thread(target=_listen, args=(events,), daemon=True).start()
    status = 0
    try:
        if told := events.get():
            program = _start(json.loads(told))
            threading.Thread(target=_wait, args=(program, events), daemon=True).start()
            events.get()
            end(program)
            status = program.returncode
    except OSError as e:
        print(e, file=sys.stderr, flush=True)
        status = 1
    finally:
        _remove(folder)
    return status if status >= 0 else 128 - status


def _listen(events: queue.SimpleQueue[bytes]) -> None:
    with os.fdopen(os.dup(0), "rb") as told:
        events.put(told.readline())
        told.read()
    events.put(b"")


def _start(told: dict[str, Any]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        told["arguments"],
        env=told["environment"],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,
    )


def _wait(program: subprocess.Popen[bytes], events: queue.SimpleQueue[bytes]) -> None:
    program.wait()
    events.put(b"")


def _die_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end(program: subprocess.Popen[bytes]) -> None:
    """End a program, the leader of its process group, and the rest of the group."""
    if sys.platform == "win32":
        # Windows has no groups to signal; taskkill ends a process with its children.
        command = ["taskkill", "/T", "/F", "/PID", str(program.pid)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        program.wait()
        return
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(_PATIENCE)


def _remove(folder: str) -> None:
    for _ in range(20):  # the program's last processes may still write
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):  # noqa: PTH110
            return
        time.sleep(0.05)


if __name__ == "__main__":
    status = main(sys.argv[1])
    sys.stderr.flush()
    os._exit(status)  # no waiting for threads

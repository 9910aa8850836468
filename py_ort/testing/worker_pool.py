"""Pools of worker processes that run cases; the workers end with this process, whatever ends it."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from py_ort.browser.loop import shut_down
from py_ort.uninterrupted import start


class WorkerPool(ProcessPoolExecutor):
    """Spawned processes, each with its own loop, browser and driver. As a context manager, it ends them.

    Args:
        jobs: Number of processes.
        kernels: Files of user kernels to register in each process.
    """

    def __init__(self, jobs: int, kernels: Sequence[Path] = ()) -> None:
        spawn = multiprocessing.get_context("spawn")
        super().__init__(jobs, mp_context=spawn, initializer=_begin, initargs=(tuple(kernels),))

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        self.end(interrupted=kind is not None)

    def end(self, interrupted: bool) -> None:
        """End the workers, which close their browsers.

        Args:
            interrupted: Do not wait for the work that is running.
        """
        running = list((self._processes or {}).values())
        self.shutdown(wait=not interrupted, cancel_futures=True)
        for process in running if interrupted else ():
            process.terminate()


def _begin(kernels: Sequence[Path]) -> None:
    """Prepare a worker process."""
    logging.getLogger("py_ort").setLevel(logging.ERROR)
    for name in ("SIGINT", "SIGHUP"):  # a terminal sends them to all processes; the parent tells the workers
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: start(threading.Thread(target=_end)))
    threading.Thread(target=_end_with_parent, name="py_ort-parent", daemon=True).start()
    if kernels:
        from py_ort.user_kernels import load_kernels

        for file in kernels:
            load_kernels(file)


def _end_with_parent() -> None:
    # Its siblings hold the other end of the pipe that a worker waits at for work: the pipe does not tell.
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    _end()


_ending = threading.Lock()


def _end() -> None:
    """Close this worker's browsers and end the process, once."""
    if _ending.acquire(blocking=False):
        shut_down()
        os._exit(1)

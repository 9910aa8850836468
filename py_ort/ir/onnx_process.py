"""A process of ONNX's C++, started when it is first needed; the next request after its death starts another one."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from py_ort.ir.onnx_worker import answer
from py_ort.uninterrupted import HAS_THREADS, time_left

_WORKER = Path(__file__).with_name("onnx_worker.py")
#: Seconds for a node, whose inference takes less than a thousandth, and for a process that starts.
_PATIENCE, _START = 3.0, 30.0


class Died(Exception):
    """The process ended, or had to be ended, over a request."""


class Refused(Exception):
    """ONNX reports an error in a request.

    Attributes:
        kind: Name of the exception's class.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class OnnxProcess:
    """The process, of which there is one at most in each process of Python."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def ask(self, function: str, *arguments: Any, patience: float = _PATIENCE) -> Any:
        """Call a function of `onnx_worker`.

        Args:
            function: Its name.
            arguments: Its arguments.
            patience: Seconds that it may take.

        Raises:
            Refused: It raised an exception.
            Died: The process ended, or took longer.
        """
        if not HAS_THREADS:  # nor processes: here, the worker that runs Python may crash instead
            return _result(*answer(function, arguments))
        with self._lock:
            process = self._process
            if process is None or self._owner != os.getpid() or process.poll() is not None:
                process = self._process = self._start()
            try:
                assert process.stdin is not None
                pickle.dump((function, arguments), process.stdin)
                process.stdin.flush()
                succeeded, result = _read(process, patience)
            except (OSError, EOFError, pickle.UnpicklingError) as e:
                self._end(process)
                raise Died from e
            except BaseException:  # an interrupt, behind which the answer would be taken for that of the next request
                self._end(process)
                raise
        return _result(succeeded, result)

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._owner = os.getpid()
        try:
            assert process.stdin is not None
            pickle.dump(sys.path, process.stdin)
            process.stdin.flush()
            _read(process, _START)
        except BaseException:
            self._end(process)
            raise
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # closing writes what is buffered
                if pipe is not None:
                    pipe.close()
        process.wait()
        self._process = None

    def close(self) -> None:
        """End the process, if it is one of this process of Python."""
        if self._process is not None and self._owner == os.getpid():
            self._end(self._process)


def _result(succeeded: bool, result: Any) -> Any:
    if not succeeded:
        raise Refused(*result)
    return result


def _read(process: subprocess.Popen[bytes], patience: float) -> Any:
    """Return the process's next answer; kill the process if it takes too long, or longer than the time left."""
    assert process.stdout is not None
    timer = threading.Timer(min(patience, time_left()), process.kill)
    timer.daemon = True
    timer.start()
    try:
        return pickle.load(process.stdout)
    finally:
        timer.cancel()


onnx_process = OnnxProcess()
atexit.register(onnx_process.close)

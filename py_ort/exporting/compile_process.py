"""Compiles models in another process, with limits: a model that crashes it does no other harm."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from py_ort import exceptions
from py_ort.compiler.load.digest import FileStamp
from py_ort.exceptions import EngineError, OutOfMemory, PyOrtError, Timeout
from py_ort.exporting.export import Exported
from py_ort.exporting.job import ExportOptions

Progress = Callable[[str, int, int], None]
_WORKER = "py_ort.exporting.compile_worker"


@dataclass(frozen=True)
class Limits:
    """Limits of a process.

    Attributes:
        memory: Bytes of memory for the process; 0: no limit. No effect if the system cannot limit it.
        seconds: Seconds for a model; 0: no limit.
    """

    memory: int = 0
    seconds: float = 0


class CompileProcess:
    """A process that compiles one model at a time. Started at the first model, and again after it has died.

    Args:
        options: Options of all its models.
        limits: Its limits.
    """

    def __init__(self, options: ExportOptions, limits: Limits | None = None) -> None:
        self._options, self._limits = options, limits or Limits()
        self._process: subprocess.Popen[str] | None = None
        self._ended = False

    def export(self, model: Path, output: Path, progress: Progress = lambda stage, done, total: None) -> Exported:
        """Compile a model; see `py_ort.export`.

        Args:
            model: An ONNX file.
            output: The file to write.
            progress: As for `py_ort.export`.

        Raises:
            PyOrtError: The model cannot be compiled.
            Timeout: It takes longer than the limit.
            OutOfMemory, EngineError: The process died of it.
            OSError: A file cannot be read or written.
        """
        process = self._process = self._process or self._start()
        late = threading.Event()

        def end_late() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(self._limits.seconds, end_late)
        timer.daemon = True
        if self._limits.seconds:
            timer.start()
        try:
            answer = self._ask(process, {"model": str(model.absolute()), "output": str(output.absolute())}, progress)
        finally:
            timer.cancel()
        if answer is None:
            self._drop()
            raise self._died(process, late.is_set(), model)
        if "error" in answer:
            raise _error(answer)
        stamps = {location: FileStamp(**stamp) for location, stamp in answer["external"].items()}
        return Exported([output.with_name(name) for name in answer["files"]], stamps)

    def end(self) -> None:
        """Kill the process and its child processes."""
        self._ended = True
        self._drop()

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def _start(self) -> subprocess.Popen[str]:
        if self._ended:
            raise EngineError("models are compiled no more: the program is ending")
        process = subprocess.Popen(
            [sys.executable, "-m", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # a terminal's Ctrl-C reaches this process only; child processes end with the group
        )
        _write(process, {"memory": self._limits.memory, "options": asdict(self._options)})
        return process

    def _ask(self, process: subprocess.Popen[str], job: Mapping[str, str], progress: Progress) -> dict[str, Any] | None:
        """Send it a job; return its answer, None if it died."""
        _write(process, job)
        assert process.stdout
        for line in process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if "stage" not in answer:
                return answer
            progress(answer["stage"], answer["done"], answer["total"])
        return None

    def _died(self, process: subprocess.Popen[str], late: bool, model: Path) -> PyOrtError:
        if late:
            return Timeout(f"{model.name} took longer to compile than {self._limits.seconds:g} s")
        status = process.returncode
        if status == -signal.SIGKILL:
            return OutOfMemory(f"{model.name}: the process that compiled it was killed; it may have had no memory left")
        return EngineError(f"{model.name}: the process that compiled it ended with status {status}")


def _write(process: subprocess.Popen[str], message: object) -> None:
    assert process.stdin
    with contextlib.suppress(OSError):  # it has died; the reader of its answers will notice
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _error(answer: Mapping[str, str]) -> Exception:
    kind = getattr(exceptions, answer["error"], None)
    if isinstance(kind, type) and issubclass(kind, PyOrtError):
        return kind(answer["text"])
    return OSError(answer["text"])

"""A separate process that may crash or hang without harm: it is ended, and the next question gets a new one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


class ChildLost(Exception):
    """The process ended, or took too long and was ended."""


class Child:
    """Answers questions by a function, one after the other, in a separate process.

    Args:
        answer: A function of a module, so that the process finds it.
        timeout: Seconds for one answer.
    """

    def __init__(self, answer: Callable[..., Any], timeout: float) -> None:
        self._answer, self._timeout = answer, timeout
        self._process: Any = None
        self._pipe: Any = None

    def ask(self, *question: Any) -> Any:
        """Return the answer.

        Raises:
            ChildLost: The process ended or took too long.
        """
        if self._process is None:
            # Spawned: a fork would share threads' locks and browsers.
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._answer), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send(question)
            if self._pipe.poll(self._timeout):
                return self._pipe.recv()
            text = f"no answer within {self._timeout:g} s"
        except (EOFError, OSError):
            self._process.join(5)
            text = f"the process ended with status {self._process.exitcode}"
        self.close()
        raise ChildLost(text)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(pipe: Connection, answer: Callable[..., Any]) -> None:
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        pipe.send(answer(*question))

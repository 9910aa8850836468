"""The command `py-ort`. Each command is a file; they use nothing but the public API."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.cli.group import cli as cli

__all__ = ["cli", "main"]
__getattr__ = lazily(__name__, {"cli": "group"})


#: Signals that end a command as Ctrl-C does: `kill` and `timeout` send the first, a terminal that closes the second.
_ENDING = ("SIGTERM", "SIGHUP")


def main() -> None:
    """Run the command line.

    An interrupt ends it with status 130, while it is still imported, too; another signal with 128 and its number.
    """
    ended: list[int] = []
    atexit.register(_end_at_once, ended)  # runs last: browsers are closed by then
    _take_as_interrupts(ended)
    try:
        from py_ort.cli.group import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        ended.append(128 + signal.SIGINT)  # counts if it is the first
        sys.exit(ended[0])


def _take_as_interrupts(ended: list[int]) -> None:
    """Treat the signals of `_ENDING` as Ctrl-C; later signals do nothing, because the command is ending.

    Args:
        ended: Receives the command's status.
    """

    def end(number: int, frame: FrameType | None) -> None:
        if not ended:
            ended.append(128 + number)
            interrupt = signal.getsignal(signal.SIGINT)  # asyncio has one of its own
            (interrupt if callable(interrupt) else signal.default_int_handler)(signal.SIGINT, frame)

    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has it ignored
            signal.signal(number, end)


def _end_at_once(ended: list[int]) -> None:
    """On interrupt, exit at once: interpreter teardown is the slowest part.

    Otherwise skip the last garbage collection, which takes 0.3 s and frees memory that the system frees anyway.
    """
    if ended:
        with contextlib.suppress(OSError, ValueError):  # the reader of our output may have ended
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(ended[0])
    gc.freeze()

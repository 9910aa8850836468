"""The command `py-ort`. Each command is a file; they use nothing but the public API."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.cli.group import cli as cli

__all__ = ["cli", "main"]
__getattr__ = lazily(__name__, {"cli": "group"})


_INTERRUPTED = 130


def main() -> None:
    """Run the command line. An interrupt ends it with status 130, while it is still imported, too."""
    interrupted: list[int] = []
    atexit.register(_end_at_once, interrupted)  # the first one is called last: browsers are closed by then
    try:
        from py_ort.cli.group import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        interrupted.append(_INTERRUPTED)
        sys.exit(_INTERRUPTED)


def _end_at_once(interrupted: list[int]) -> None:
    """Spare who interrupted a command that Python takes its modules apart, which takes longer than all else.

    Others it spares the last search for garbage among all objects, 0.3 s, whose memory the process gives back anyway.
    """
    if interrupted:
        with contextlib.suppress(OSError, ValueError):  # whoever read our output may be gone
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(_INTERRUPTED)
    gc.freeze()

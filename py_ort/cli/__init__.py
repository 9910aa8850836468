"""The command `py-ort`. Each command is a file; they use nothing but the public API."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.cli.group import cli as cli

__all__ = ["cli", "main"]
__getattr__ = lazily(__name__, {"cli": "group"})


def main() -> None:
    """Run the command line. An interrupt ends it with status 130, while it is still imported, too."""
    try:
        from py_ort.cli.group import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        sys.exit(130)

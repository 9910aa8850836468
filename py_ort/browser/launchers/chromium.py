"""Chromium as a plain process."""

from __future__ import annotations

import os
from pathlib import Path

from py_ort.browser import find
from py_ort.browser.launchers.process import Command, ProcessLauncher

#: Longest path of a folder for Chromium's socket, whose path is limited to 107 bytes.
_LONGEST = 107 - len("/org.chromium.Chromium.123456/SingletonSocket")


def temporary(folder: Path) -> dict[str, str]:
    """Return the variable that makes Chromium keep all its temporary files in a folder."""
    return {"TMPDIR": str(folder)} if len(os.fsencode(folder)) <= _LONGEST else {}


class ChromiumLauncher(ProcessLauncher):
    """Chromium, or a browser based on it."""

    def command(self, url: str, profile: Path) -> Command:
        binary = find.binary(self.options.browser)
        flags = self.options.command_line()
        if self.options.headless and not any(flag.startswith("--headless") for flag in flags):
            flags.insert(0, "--headless=new")
        return Command(
            [str(binary), *flags, f"--user-data-dir={profile}", url],
            {**self.options.environment(), **temporary(profile)},
            find.version(binary) or binary.name,
        )

"""Chromium as a plain process."""

from __future__ import annotations

from pathlib import Path

from py_ort.browser import find
from py_ort.browser.launchers.process import Command, ProcessLauncher


class ChromiumLauncher(ProcessLauncher):
    """Chromium, or what is made of it."""

    def command(self, url: str, profile: Path) -> Command:
        binary = find.binary(self.options.browser)
        flags = self.options.command_line()
        if self.options.headless and not any(flag.startswith("--headless") for flag in flags):
            flags.insert(0, "--headless=new")
        return Command(
            [str(binary), *flags, f"--user-data-dir={profile}", url],
            self.options.environment(),
            find.version(binary) or binary.name,
        )

"""Changed files of a folder, found by regular checks, which work on every system and file system."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

#: Folders to skip, besides hidden ones: large, and never edited by hand.
_SKIPPED = frozenset({"node_modules", "__pycache__"})
#: The most files to check: a larger folder cannot be one to reload pages for.
_MOST = 20_000


class Changes:
    """Files below a folder, and some others.

    Args:
        folder: The folder.
        others: Files in any place.
    """

    def __init__(self, folder: Path, others: Sequence[Path] = ()) -> None:
        self._folder, self._others = folder, others
        self._known = dict(self._look())

    def since(self) -> list[Path]:
        """Return files changed, added or removed since the last call."""
        now = dict(self._look())
        before, self._known = self._known, now
        return [file for file in {**before, **now} if before.get(file) != now.get(file)]

    def _look(self) -> Iterator[tuple[Path, tuple[int, int]]]:
        for file in self._others:
            try:
                found = file.stat()
            except OSError:
                continue
            yield file, (found.st_mtime_ns, found.st_size)
        folders, count = [self._folder], 0
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except OSError:
                continue
            for entry in entries:
                if entry.name.startswith(".") or entry.name in _SKIPPED:
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        yield Path(entry.path), (found.st_mtime_ns, found.st_size)
                        count += 1
                except OSError:
                    continue
            if count > _MOST:
                return

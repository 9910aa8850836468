"""A model's identity: the hash of its contents, and the stamps by which an unchanged file is recognized."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from py_ort.compiler.load.model_files import make_private, open_file, replacing
from py_ort.uninterrupted import HAS_THREADS

_PIECE = 8 << 20
#: A file that changed less than this many seconds ago may change again without another time stamp.
_SETTLED = 2.0


@dataclass(frozen=True)
class FileStamp:
    """The result of `stat` for a file. Equal stamps: equal contents (the change time cannot be set by hand)."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, file: str | os.PathLike[str] | BinaryIO) -> FileStamp:
        """Look at a file, by its path or opened.

        Raises:
            OSError: It is not there.
        """
        found = Path(file).stat() if isinstance(file, (str, os.PathLike)) else os.fstat(file.fileno())
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)

    def settled(self) -> bool:
        """True if the file is old enough for the stamp to be trusted."""
        return time.time() - max(self.mtime_ns, self.ctime_ns) / 1e9 > _SETTLED

    def to_json(self) -> dict[str, Any]:
        """Return the stamp as plain data, for `FileStamp(**data)`."""
        return asdict(self)


def digest(data: bytes | memoryview) -> str:
    """Return a hash of contents: SHA-256 of pieces, whose hashes are hashed again; threads share the pieces."""
    view = memoryview(data).cast("B")
    pieces = [view[at : at + _PIECE] for at in range(0, max(view.nbytes, 1), _PIECE)]
    if len(pieces) == 1 or not HAS_THREADS:
        hashes = [hashlib.sha256(piece).digest() for piece in pieces]
    else:
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            hashes = list(pool.map(lambda piece: hashlib.sha256(piece).digest(), pieces))
    return hashlib.sha256(b"".join(hashes)).hexdigest()


def file_digest(path: Path, notes: Path | None = None) -> str:
    """Return the hash of a file's contents.

    Args:
        path: The file.
        notes: A folder in which hashes are noted by the files' stamps, so that an unchanged file is not read again.

    Raises:
        OSError: The file cannot be read.
    """
    stamp = FileStamp.of(path)
    note = notes / hashlib.sha256(repr((str(path.resolve()), astuple(stamp))).encode()).hexdigest() if notes else None
    if note is not None:
        with contextlib.suppress(OSError, ValueError):  # missing or damaged
            with open_file(note, own=True) as file:
                noted = file.read(100).decode("ascii")
            if len(bytes.fromhex(noted)) == 32:
                return noted
    with open_file(path) as file:
        found = digest(file.read())
    if note is not None and stamp.settled() and stamp == FileStamp.of(path):
        with contextlib.suppress(OSError):
            make_private(note.parent, own=True)
            with replacing(note) as file:
                file.write(found.encode())
    return found

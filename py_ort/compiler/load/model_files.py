"""Opens files of models, with external data in its folder only, and makes files that only their owner reads."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import selectors
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import BinaryIO

import numpy as np

from py_ort.exceptions import PyOrtError
from py_ort.wire.parts import Stored, StreamedPart

#: Session configuration entry: the folder of external data of a model given as bytes, or with its data elsewhere.
DATA_FOLDER_ENTRY = "session.model_external_initializers_file_folder_path"
#: Smaller files are read whole: others hold a file handle, of which a process has about a thousand.
_STREAMED_FROM = 1 << 20
#: Bytes that are read and sent at once, where the system does not do that.
_PIECE = 1 << 20
#: Suffix of files that are still being written.
UNFINISHED = ".part"
_SHOWN = 200  # letters of a name in a message


class OutsideFolder(Exception):
    """The external data is outside the folder that the model may read."""


class NoData(Exception):
    """External data of a model that may have none."""


def open_file(path: str | os.PathLike[str], flags: int = 0, own: bool = False) -> BinaryIO:
    """Open a regular file for reading. Never waits: a pipe or a device is an error, and is not opened.

    Args:
        path: The file.
        flags: More flags of `os.open`.
        own: True to refuse files of other users.

    Raises:
        OSError: It is not there, no regular file, or cannot be read.
    """
    try:
        _check_regular(path, Path(path).stat())
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | flags)
    except ValueError as e:  # no path at all: it has a NUL, or letters that no file name can have
        raise OSError(errno.EINVAL, str(e), path) from e
    try:
        found = os.fstat(handle)
        _check_regular(path, found)  # it may be another one by now
        if own and not _is_ours(found):
            raise PermissionError(errno.EPERM, "it belongs to another user", path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _check_regular(path: str | os.PathLike[str], found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, a device or the like, and no file", path)


def _is_ours(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def contents_of(file: BinaryIO, name: str, error: type[PyOrtError]) -> Stored:
    """Return the contents of an opened file; a large file is read at the first access.

    It is not mapped: where a file is written over in place, a mapping ends the process by SIGBUS.

    Args:
        file: The file.
        name: For messages.
        error: Raised by who reads what the file does not have any more.
    """
    size = os.fstat(file.fileno()).st_size
    if size < _STREAMED_FROM:
        file.seek(0)
        return memoryview(file.read())
    reader = _Reader(file, name, error)
    return StreamedPart(size, reader.read, reader.send)


class _Reader:
    """Reads an opened file at any offset, from any thread, until the last reference to the reader is gone."""

    def __init__(self, file: BinaryIO, name: str, error: type[PyOrtError]) -> None:
        self._file = os.fdopen(os.dup(file.fileno()), "rb", buffering=0)
        self._name, self._error = name, error
        self._lock = threading.Lock()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # there were no handles left
            self._file.close()

    def read(self, offset: int, size: int) -> memoryview:
        made = memoryview(np.empty(size, np.uint8))  # type: ignore[arg-type]
        done = 0
        while done < size:
            try:
                count = self._fill(made[done:], offset + done)
            except OSError as e:
                raise self._error(f"{self._name} cannot be read: {e.strerror}") from e
            if not count:
                raise self._cut_off(offset + size)
            done += count
        return made

    def _fill(self, room: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [room], offset)
        with self._lock:  # the place to read at is the file's
            self._file.seek(offset)
            return self._file.readinto(room) or 0

    def send(self, connection: socket, offset: int, size: int) -> None:
        end = offset + size
        if hasattr(os, "sendfile"):  # the system copies, in half the time
            offset = self._send_file(connection, offset, end)
        for at in range(offset, end, _PIECE):
            connection.sendall(self.read(at, min(_PIECE, end - at)))

    def _send_file(self, connection: socket, offset: int, end: int) -> int:
        """Have the system send bytes; return where it stopped: not all file systems can do that."""
        with selectors.DefaultSelector() as ready:
            ready.register(connection, selectors.EVENT_WRITE)
            while offset < end:
                if not ready.select(connection.gettimeout()):
                    raise TimeoutError("the page does not read")
                try:
                    sent = os.sendfile(connection.fileno(), self._file.fileno(), offset, end - offset)
                except BlockingIOError:
                    continue
                except ConnectionError:
                    raise
                except OSError:
                    break
                if not sent:
                    raise self._cut_off(end)
                offset += sent
        return offset

    def _cut_off(self, wanted: int) -> PyOrtError:
        there = os.fstat(self._file.fileno()).st_size
        return self._error(
            f"{self._name} was cut off while it was in use: it has {there} bytes now, and {wanted} are needed. Let "
            "whoever writes it write another file, and rename that"
        )


@contextmanager
def replacing(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Write a file atomically, in place of an existing one.

    Args:
        path: The file.
        mode: Who may do what with it: its owner alone.

    Raises:
        OSError: It cannot be written.
    """
    unfinished = path.with_name(f"{path.name[:16]}-{secrets.token_hex(8)}{UNFINISHED}")
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def make_private(folder: Path, own: bool = False) -> None:
    """Make a folder, and missing parents, with access for the owner only.

    Args:
        folder: The folder.
        own: True to close an existing folder to other users, too: only py_ort makes and uses it.

    Raises:
        OSError: It cannot be made.
    """
    for each in reversed([folder, *folder.parents]):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)
    if own:
        found = folder.stat()
        if found.st_mode & 0o077 and _is_ours(found):
            folder.chmod(0o700)


@dataclass(frozen=True)
class DataFolder:
    """The folder that a model's external data is read from, and from nowhere else.

    Attributes:
        path: The folder; the model's locations are relative to it.
        model: The model's file, if the folder is its own. Where this is a link, data may also lie in the folder of
            the file that it leads to: so do the caches of Hugging Face keep models.
        closed: True if the model may have no external data: no file is even looked for.
    """

    path: Path
    model: Path | None = None
    closed: bool = False

    @classmethod
    def of(cls, source: object, named: str = "") -> DataFolder | None:
        """Return the folder of a model; None: it may have no external data.

        Args:
            source: The path of its file, or its bytes.
            named: A folder that the caller names, instead of that of the file.
        """
        if named:
            return cls(Path(named))
        return cls(Path(source).parent, Path(source)) if isinstance(source, (str, os.PathLike)) else None

    def open(self, location: str) -> BinaryIO:
        """Open a file of external data.

        Args:
            location: The file's location, as the model has it.

        Raises:
            NoData: The model may have no external data.
            OutsideFolder: This is not in the folder, or a link that leads out of it.
            OSError: There is no such file, or it cannot be read.
        """
        if self.closed:
            raise NoData(location)
        if Path(location).is_absolute():
            raise OutsideFolder(location)
        try:
            real = os.path.realpath(self.path / location, strict=True)
        except ValueError as e:
            raise OSError(errno.EINVAL, str(e), location) from e
        if not any(Path(real).is_relative_to(folder) for folder in self._allowed()):
            raise OutsideFolder(real)
        return open_file(real, getattr(os, "O_NOFOLLOW", 0))

    def _allowed(self) -> list[Path]:
        own = [] if self.model is None else [self.model.resolve().parent]
        return [self.path.resolve(), *own]


def shown(name: str | bytes | os.PathLike[str]) -> str:
    """Return a name of a file or a tensor for a message, whatever it is made of and however long."""
    text = os.fsdecode(name)
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}… ({len(text)} letters)"

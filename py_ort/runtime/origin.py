"""The model that a session is made of: the same files, however often they are read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from py_ort.compiler.load.digest import FileStamp, digest, file_digest
from py_ort.compiler.load.files import DataFolder, shown
from py_ort.exceptions import Fail, WrongType
from py_ort.signal_handlers import from_handler

Source: TypeAlias = "str | os.PathLike[str] | bytes"
_BYTES = (bytes, bytearray, memoryview)
_MODEL = ""  # the location of the model itself; external data have others


def check_source(source: object) -> None:
    """Raise `WrongType` if this is neither a path nor bytes."""
    if not isinstance(source, (str, os.PathLike, *_BYTES)):
        raise WrongType(f"a model is the path of a file, or its bytes, not {type(source).__name__}")


class Origin:
    """A model's file, or its bytes, and its external data.

    Plans for other shapes or outputs, or for another worker, are made while the session lives. They must be of what its
    first plan was made of: the current folder and the files may be others by then.

    Args:
        source: Path or bytes of an ONNX file.
        folder: The folder of its external data, where it is not that of its file.

    Attributes:
        source: The path, absolute; or the bytes.
        folder: The folder, absolute; None: it may have no external data.
    """

    def __init__(self, source: Source, folder: str = "") -> None:
        self.source: Source = source if isinstance(source, _BYTES) else _absolute(source)
        self._named = str(_absolute(folder)) if folder else ""
        self.folder = DataFolder.of(self.source, self._named)
        self._stamps: dict[str, FileStamp] = {}

    def anew(self) -> Origin:
        """Return the same place, whatever lies there now."""
        return Origin(self.source, self._named)

    @property
    def path(self) -> str:
        """The path of the model's file, absolute; "" of bytes."""
        return "" if isinstance(self.source, _BYTES) else str(self.source)

    def stamp(self) -> FileStamp | None:
        """Look at the model's file, before it is read.

        Raises:
            OSError, ValueError: It cannot be looked at.
        """
        return None if isinstance(self.source, _BYTES) else FileStamp.of(self.source)

    def digest(self, notes: Path | None) -> str:
        """Return the hash of the model's contents, and note it; see `file_digest`.

        Raises:
            OSError, ValueError: They cannot be read.
        """
        return digest(self.source) if isinstance(self.source, _BYTES) else file_digest(Path(self.source), notes)

    def settle(self, model: FileStamp | None, external: Mapping[str, FileStamp]) -> None:
        """Note what files a plan is made of; called with each one.

        Args:
            model: What `stamp` said before it was read.
            external: The files of external data, by location.

        Raises:
            Fail: They are not those of the first plan.
        """
        stamps = dict(external) if model is None else {_MODEL: model, **external}
        for location, stamp in stamps.items():
            if self._stamps.setdefault(location, stamp) != stamp:
                name = shown(location) if location else shown(str(self.source))
                raise Fail(f"{name} is not the file any more that the session was made of: make it anew")


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Without a look at links: `..` behind one leads elsewhere than the text says."""
    try:
        return Path(os.fsdecode(path)).absolute()
    except OSError as e:  # the current folder is gone
        if from_handler(e):
            raise
        return Path(os.fsdecode(path))

"""A session's model: its files must not change while the session uses them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from py_ort.compiler.load.digest import FileStamp, digest, file_digest
from py_ort.compiler.load.model_files import DataFolder, shown
from py_ort.exceptions import Fail, WrongType
from py_ort.signal_handlers import from_handler

Source: TypeAlias = "str | os.PathLike[str] | bytes"
_BYTES = (bytes, bytearray, memoryview)
_MODEL = ""  # location of the model itself, among those of external data


def check_source(source: object) -> None:
    """Raise `WrongType` if this is neither a path nor bytes."""
    if not isinstance(source, (str, os.PathLike, *_BYTES)):
        raise WrongType(f"a model is the path of a file, or its bytes, not {type(source).__name__}")


class Origin:
    """A model's file, or its bytes, and its external data.

    Later plans of a session, for other shapes, outputs or workers, must be made from the same contents as the first
    plan. Meanwhile the current folder and the files may change.

    Args:
        source: Path or bytes of an ONNX file.
        folder: Folder of external data, if it is not the file's.

    Attributes:
        source: The absolute path, or the bytes.
        folder: The absolute folder; None: no external data are allowed.
    """

    def __init__(self, source: Source, folder: str = "") -> None:
        self.source: Source = source if isinstance(source, _BYTES) else _absolute(source)
        self._named = str(_absolute(folder)) if folder else ""
        self.folder = DataFolder.of(self.source, self._named)
        self._stamps: dict[str, FileStamp] = {}

    def anew(self) -> Origin:
        """Return the same place, with its current contents."""
        return Origin(self.source, self._named)

    @property
    def path(self) -> str:
        """The absolute path of the model's file; "" of bytes."""
        return "" if isinstance(self.source, _BYTES) else str(self.source)

    def stamp(self) -> FileStamp | None:
        """Return the state of the model's file, before it is read.

        Raises:
            OSError, ValueError: There is no such file.
        """
        return None if isinstance(self.source, _BYTES) else FileStamp.of(self.source)

    def digest(self, notes: Path | None) -> str:
        """Return the hash of the model's contents, and note it; see `file_digest`.

        Raises:
            OSError, ValueError: The contents cannot be read.
        """
        return digest(self.source) if isinstance(self.source, _BYTES) else file_digest(Path(self.source), notes)

    def settle(self, model: FileStamp | None, external: Mapping[str, FileStamp]) -> None:
        """Note the files of a plan; called for each plan.

        Args:
            model: The result of `stamp` before the file was read.
            external: Files of external data, by location.

        Raises:
            Fail: A file has changed since the first plan.
        """
        stamps = dict(external) if model is None else {_MODEL: model, **external}
        for location, stamp in stamps.items():
            if self._stamps.setdefault(location, stamp) != stamp:
                name = shown(location) if location else shown(str(self.source))
                raise Fail(f"{name} is not the file any more that the session was made of: make it anew")


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path without resolving links, because `..` after a link may lead elsewhere."""
    try:
        return Path(os.fsdecode(path)).absolute()
    except OSError as e:  # the current folder is gone
        if from_handler(e):
            raise
        return Path(os.fsdecode(path))

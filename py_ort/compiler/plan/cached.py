"""A plan and its weights in one file.

    8 bytes magic | u64 size of header | u64 of plan | SHA-256 of both | header: JSON | plan | weights | u64 digest

The weights start at a multiple of 64. Those that lie in the model's external data as they are wanted are not copied:
the header says where they are. Their digest (`_Digest`) runs at half the speed of memory: a cryptographic hash would
take longer than the page to fetch them.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from py_ort.compiler.load.digest import FileStamp
from py_ort.compiler.load.metadata import ModelMetadata
from py_ort.compiler.load.model_files import DataFolder, OutsideFolder, contents_of, open_file, shown
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidGraph, InvalidProtobuf
from py_ort.providers import Placement
from py_ort.typed_json import read
from py_ort.wire.parts import Part, Stored, cut, size_of, whole

if TYPE_CHECKING:
    from py_ort.compiler import CompiledModel

_MAGIC = b"PYORTC03"
_PREFIX = struct.Struct("<8sQQ32s")
_DIGEST_SIZE = 8
_ALIGNMENT = 64
#: Bytes that are summed up at once: whole rows of a digest's columns.
_PIECE = 1 << 20
_checked: set[FileStamp] = set()


class DamagedEntry(Exception):
    """A file that is damaged."""


@dataclass
class CachedModel:
    """The parts of a `CompiledModel` that a session needs. The weights stay in the file.

    Attributes:
        external: The files of the model's external data that it was made of, by location.
        scope: See `py_ort.runtime.planning.Planned`.
    """

    plan: bytes
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    overridable: list[NodeArg]
    metadata: ModelMetadata
    placement: Placement
    file: Path
    external: Mapping[str, FileStamp]
    _parts: Sequence[Part]
    scope: str = ""

    def parts(self) -> Sequence[Part]:
        """Return the weights' blob."""
        return self._parts


def write_entry(
    file: BinaryIO, compiled: CompiledModel, external: Mapping[str, FileStamp], source: str = "", key: str = ""
) -> None:
    """Write a compiled model.

    Args:
        file: Where to.
        compiled: The model.
        external: The files of its external data, by location.
        source: The model's file, for people.
        key: Its key in the cache.
    """
    pieces: list[tuple[str, int, int]] = []  # file ("": this one), offset, size
    inside: list[Part] = []
    at = 0
    for piece in compiled.weights.pieces():
        if piece.location in external:
            pieces.append((piece.location, piece.offset, piece.size))
        else:
            pieces.append(("", at, piece.size))
            inside.append(piece.part)
            at += piece.size
    header = json.dumps(
        {
            "inputs": [asdict(arg) for arg in compiled.inputs],
            "outputs": [asdict(arg) for arg in compiled.outputs],
            "overridable": [asdict(arg) for arg in compiled.overridable],
            "metadata": asdict(compiled.metadata),
            "placement": compiled.placement.to_json(),
            "external": {name: stamp.to_json() for name, stamp in external.items()},
            "source": source,
            "key": key,
            "pieces": pieces,
            "size": at,
        }
    ).encode()
    checksum = hashlib.sha256(header + compiled.plan).digest()
    file.write(_PREFIX.pack(_MAGIC, len(header), len(compiled.plan), checksum))
    file.write(header)
    file.write(compiled.plan)
    file.write(bytes(-file.tell() % _ALIGNMENT))
    digest = _Digest()
    for part in inside:
        made = whole(part)
        digest.add(made)
        file.write(made)
    file.write(digest.value())


def read_entry(path: Path, folder: DataFolder | None) -> CachedModel | None:
    """Read a file of `write_entry`; None if the external data has changed since.

    Args:
        path: The file.
        folder: The folder of the model's external data.

    Raises:
        FileNotFoundError: There is none.
        DamagedEntry: It is damaged.
        Exception: Anything, when it was damaged so that its checksum is right.
    """
    with open_file(path, own=True) as file:
        header, plan, start = _read(file)
        if header["key"] != path.stem:
            raise DamagedEntry("it is the plan of another model")
        stamps = read(dict[str, FileStamp], header["external"])
        external = {name: _unchanged(folder, name, stamp) for name, stamp in stamps.items()}
        if None in external.values():
            return None
        contents = contents_of(file, f"the cached plan {path}", InvalidProtobuf)
        inside = cut(contents, start, size_of(contents) - start)
        stamp = FileStamp.of(file)
    _check_weights(inside, header, stamp)
    files = {name: contents for name, contents in external.items() if contents is not None} | {"": inside}
    metadata = read(ModelMetadata, header["metadata"])
    inputs, outputs, overridable = (
        read(list[NodeArg], header[which]) for which in ("inputs", "outputs", "overridable")
    )
    parts = list(_joined(header["pieces"], files))
    placement = Placement.from_json(header["placement"])
    return CachedModel(plan, inputs, outputs, overridable, metadata, placement, path, stamps, parts)


def read_header(path: Path) -> dict[str, Any]:
    """Return a file's record of its model.

    Raises:
        FileNotFoundError: There is none.
        DamagedEntry: It is damaged.
    """
    with open_file(path, own=True) as file:
        return _read(file)[0]


def _read(file: BinaryIO) -> tuple[dict[str, Any], bytes, int]:
    """Return header, plan, and where the weights start."""
    size = os.fstat(file.fileno()).st_size
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        raise DamagedEntry("it is cut off")
    magic, header_size, plan_size, checksum = _PREFIX.unpack(prefix)
    if magic != _MAGIC or header_size + plan_size > size:
        raise DamagedEntry("it is no plan of this version")
    text, plan = file.read(header_size), file.read(plan_size)
    if hashlib.sha256(text + plan).digest() != checksum:
        raise DamagedEntry("its checksum is wrong")
    header = json.loads(text)
    start = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
    whole = start + header["size"] + _DIGEST_SIZE
    if size != whole:
        raise DamagedEntry(f"it has {size} bytes, not {whole}")
    return header, plan, start


def _check_weights(inside: Stored, header: Mapping[str, Any], file: FileStamp) -> None:
    """Once in a process for each file as it is: sessions that share weights do not read them at all."""
    if file in _checked:
        return
    digest = _Digest()
    for name, offset, size in header["pieces"]:
        if not name:
            for at in range(offset, offset + size, _PIECE):
                digest.add(whole(cut(inside, at, min(_PIECE, offset + size - at))))
    if digest.value() != whole(cut(inside, header["size"], _DIGEST_SIZE)):
        raise DamagedEntry("the checksum of its weights is wrong")
    _checked.add(file)


class _Digest:
    """A polynomial hash in each of many columns of words: bytes that change places change it, too."""

    _COLUMNS = 1 << 15
    _FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: no bit of a word is lost

    def __init__(self) -> None:
        self._columns = np.zeros(self._COLUMNS, np.uint64)

    def add(self, piece: bytes | bytearray | memoryview) -> None:
        """Take the next piece, its last word filled up with zeros."""
        view = memoryview(piece).cast("B")
        whole = view.nbytes & -8
        self._add(np.frombuffer(view[:whole], "<u8"))
        if whole < view.nbytes:
            self._add(np.frombuffer(bytes(view[whole:]).ljust(8, b"\0"), "<u8"))

    def _add(self, words: np.ndarray) -> None:
        for start in range(0, len(words), self._COLUMNS):
            row = words[start : start + self._COLUMNS]
            columns = self._columns[: len(row)]
            np.multiply(columns, self._FACTOR, out=columns)
            np.add(columns, row, out=columns)

    def value(self) -> bytes:
        """Return the digest."""
        return hashlib.blake2b(self._columns.astype("<u8").tobytes(), digest_size=_DIGEST_SIZE).digest()


def _unchanged(folder: DataFolder | None, location: str, stamp: FileStamp) -> Stored | None:
    """Return the contents of a file of external data, None when it is another one than it was."""
    if folder is None:
        return None
    try:
        with folder.open(location) as file:
            if FileStamp.of(file) != stamp:
                return None
            return contents_of(file, f"the external data {shown(location)}", InvalidGraph)
    except (OSError, OutsideFolder):
        return None


def _joined(pieces: Sequence[tuple[str, int, int]], files: Mapping[str, Stored]) -> Iterator[Stored]:
    """Yield the pieces' bytes; neighbors in one file in one go."""
    run: list[Any] = []
    for name, offset, size in pieces:
        if not 0 <= offset <= offset + size <= size_of(files[name]):
            raise DamagedEntry("some of its weights are nowhere")
        if run and run[0] == name and run[2] == offset:
            run[2] += size
            continue
        if run:
            yield cut(files[run[0]], run[1], run[2] - run[1])
        run = [name, offset, offset + size]
    if run:
        yield cut(files[run[0]], run[1], run[2] - run[1])

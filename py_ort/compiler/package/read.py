"""Reads `.pyort` files: one plan, and its weights in the form that the plan needs."""

from __future__ import annotations

import json
import math
import os
import secrets
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

import numpy as np

from py_ort.compiler.load.digest import FileStamp
from py_ort.compiler.load.metadata import ModelMetadata
from py_ort.compiler.load.model_files import DataFolder, OutsideFolder, contents_of, open_file
from py_ort.compiler.package.format import ALIGNMENT, Form, Header, choose, read_header
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidProtobuf, NoSuchFile, NotImplemented
from py_ort.providers import Placement
from py_ort.providers.wasm.packing import FOUR, PANEL, integer_conv_panels, integer_panels, panels
from py_ort.schema.gen.Plan import Plan
from py_ort.schema.gen.PlanVersion import PlanVersion
from py_ort.wire.parts import SMALL, LazyPart, Part, Stored, StreamedPart, cut, send, size_of, whole

#: Errors of damaged JSON, and of a damaged plan, which is read without a check of the whole.
_DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError, struct.error)
#: Bytes of a large weight that are summed up at once.
_PIECE = 1 << 20


@dataclass
class ExportedModel:
    """A plan of a file, with the interface that sessions need; see `py_ort.runtime.planning.Planned`."""

    plan: bytes
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    metadata: ModelMetadata
    placement: Placement
    scope: str
    _parts: Sequence[Part]
    overridable: list[NodeArg] = field(default_factory=list)

    def parts(self) -> Sequence[Part]:
        """Return the weights' blob."""
        return self._parts


class Package:
    """A `.pyort` file, or its bytes; weights are read at their first access.

    Args:
        source: Path or bytes.

    Attributes:
        header: The file's header.

    Raises:
        NoSuchFile: It, or a part of it, is not there.
        InvalidProtobuf: It is damaged.
        NotImplemented: It is for another version of py_ort.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        if isinstance(source, (bytes, bytearray, memoryview)):
            first: Stored = memoryview(source).cast("B")
            folder, self._name = None, "the .pyort file"
            self._scope = secrets.token_hex()
        else:
            self._name = repr(os.fspath(source))
            try:
                with open_file(source) as file:
                    first = contents_of(file, self._name, InvalidProtobuf)
                    self._scope = str(FileStamp.of(file))
            except OSError as e:
                raise NoSuchFile(f"{os.fspath(source)!r} cannot be opened: {e.strerror}") from e
            folder = DataFolder.of(source)
        try:
            self.header, start = read_header(first)
        except InvalidProtobuf as e:
            raise InvalidProtobuf(f"{self._name}: {e.message}") from e
        self.header.check(PlanVersion.current)
        self._checksums = dict(self.header.checksums)
        self._data = [cut(first, start, size_of(first) - start), *_further(self.header, folder)]
        self._verified: set[tuple[int, int]] = set()
        self._verifying = threading.Lock()
        sizes = [size_of(piece) for piece in self._data]
        if sum(sizes) != self.header.size or any(size % ALIGNMENT for size in sizes[:-1]):
            raise InvalidProtobuf(
                f"{self._name} has {sum(sizes)} bytes of data, not {self.header.size}: it is cut off or damaged; copy "
                "it again, or export the model again"
            )

    def planned(self, providers: Sequence[str], shapes: Mapping[str, Sequence[int]]) -> ExportedModel:
        """Return the plan for these providers and shapes.

        Args:
            providers: Canonical names, in order.
            shapes: The inputs' shapes; {}: any.

        Raises:
            NotImplemented: The file has none.
            InvalidProtobuf: It is damaged.
        """
        number = choose(self.header.plans, providers, shapes)
        if number is None:
            for_shapes = f" for the shapes {dict(shapes)}" if shapes else ""
            there = "; ".join(sorted({", ".join(plan.providers) for plan in self.header.plans}))
            raise NotImplemented(
                f"the .pyort file has no plan for {', '.join(providers)}{for_shapes}, but for: {there}. Ask for those "
                "providers, or export the model again for these"
            )
        entry, header = self.header.plans[number], self.header
        plan = bytes(self._content(entry.offset, entry.size))
        try:
            placement = Placement.from_json(json.loads(bytes(self._content(*entry.placement))))
            table = Plan.GetRootAs(plan)
            named = [bytes(table.Providers(i).Name()).decode() for i in range(table.ProvidersLength())]
            if named != placement.on() or not {*named[1:]} <= {*entry.providers}:
                raise ValueError(f"its plan has nodes on {', '.join(named)}")
            parts = list(self._parts(plan, entry.weights))
        except InvalidProtobuf:
            raise
        except _DAMAGE as e:
            raise InvalidProtobuf(f"{self._name} is damaged: {e}") from e
        return ExportedModel(plan, header.inputs, header.outputs, header.metadata, placement, self._scope, parts)

    def plans(self) -> Iterator[bytes]:
        """Yield each plan.

        Raises:
            InvalidProtobuf: It is damaged.
        """
        for entry in self.header.plans:
            yield bytes(self._content(entry.offset, entry.size))

    def _content(self, offset: int, size: int) -> memoryview:
        """Return verified bytes: an error if the checksum differs."""
        content = self._bytes(offset, size)
        self._check(offset, size, zlib.crc32(content))
        return content

    def _streamed(self, offset: int, size: int) -> StreamedPart:
        """Return the same, which is read in pieces after all of it was summed up, once."""

        def verify() -> None:
            with self._verifying:
                if (offset, size) not in self._verified:
                    found = 0
                    for at in range(offset, offset + size, _PIECE):
                        found = zlib.crc32(self._bytes(at, min(_PIECE, offset + size - at)), found)
                    self._check(offset, size, found)
                    self._verified.add((offset, size))

        def read(start: int, length: int) -> memoryview:
            verify()
            return self._bytes(offset + start, length)

        def send_to(connection: socket, start: int, length: int) -> None:
            verify()
            for each in self._stored(offset + start, length):
                send(connection, each)

        return StreamedPart(size, read, send_to)

    def _check(self, offset: int, size: int, found: int) -> None:
        """See that a checksum is the one that was written."""
        if size and found != self._checksums.get(offset, found):
            files = " or ".join(self._files_of(offset, offset + size))
            raise InvalidProtobuf(
                f"{files} is damaged: its {size} bytes of data from {offset} on are not those that were written "
                "(CRC-32). Copy it again, or export the model again"
            )

    def _files_of(self, start: int, end: int) -> Iterator[str]:
        at = 0
        for name, piece in zip([self._name, *(repr(part.name) for part in self.header.parts)], self._data, strict=True):
            if start < at + size_of(piece) and end > at:
                yield name
            at += size_of(piece)

    def _bytes(self, offset: int, size: int) -> memoryview:
        found = [whole(each) for each in self._stored(offset, size)]
        return found[0] if len(found) == 1 else memoryview(b"".join(found))

    def _stored(self, offset: int, size: int) -> Iterator[Stored]:
        """Yield the bytes of a region, file by file."""
        for piece in self._data:
            length = min(size, size_of(piece) - offset)
            if length > 0:
                yield cut(piece, offset, length)
                size -= length
            offset = max(offset - size_of(piece), 0)
        if size:
            raise ValueError("something lies behind its end")

    def _parts(self, plan: bytes, places: Sequence[tuple[int, ...]]) -> Iterator[Part]:
        """Yield the blob that the plan's offsets refer to."""
        root = Plan.GetRootAs(plan, 0)
        weights = [root.Weights(i) for i in range(root.WeightsLength())]
        if len(weights) != len(places):
            raise ValueError(f"{len(places)} weights for a plan of {len(weights)}")
        written = 0
        for weight, (offset, size, form, *parameters) in sorted(
            zip(weights, places, strict=True), key=lambda w: w[0].Offset()
        ):
            if weight.Offset() < written or weight.Size() == 0:
                continue  # shares the room of an earlier one
            yield _gap(weight.Offset() - written)
            yield self._weight(offset, size, Form(form), *parameters, weight=weight)
            written = weight.Offset() + weight.Size()
        yield _gap(max(root.WeightsSize() - written, 0))

    def _weight(self, offset: int, size: int, form: Form, *parameters: int, weight: object) -> Part:
        wanted: int = weight.Size()  # type: ignore[attr-defined]
        if form == Form.AS_IS:
            if size != wanted:
                raise ValueError(f"a weight of {wanted} bytes has {size}")
            return self._content(offset, size) if size < SMALL else self._streamed(offset, size)
        dims = [weight.Dims(i) for i in range(weight.DimsLength())]  # type: ignore[attr-defined]
        if form == Form.INTEGERS:
            columns, taps, moved = parameters
            if wanted != math.prod(dims):
                raise ValueError(f"a weight of the shape {dims} has {wanted} bytes")
            return LazyPart(wanted, self._integers(offset, size, dims, columns, taps, moved))
        (slices,) = parameters or (1,)
        groups, count, rows, width = (1, *dims)[-4:]
        columns = size // max(groups * rows * 4, 1)
        whole = size == groups * rows * columns * 4 and slices > 0 and columns % slices == 0
        whole = whole and width == PANEL and wanted == 4 * groups * count * rows * width
        if not whole or not 0 <= count * width - columns < width:
            raise ValueError(f"a weight of {wanted} bytes and the shape {dims} has {size}")

        def packed() -> memoryview:
            plain = np.frombuffer(self._content(offset, size), np.float32)
            if form == Form.TRANSPOSED:
                matrix: np.ndarray = plain.reshape(columns, rows).T
            elif form == Form.SLICES:
                matrix = np.moveaxis(plain.reshape(slices, groups, rows, -1), 0, 2).reshape(groups, rows, columns)
            else:
                matrix = plain.reshape(rows, groups, columns).swapaxes(0, 1)
            return memoryview(np.ascontiguousarray(panels(matrix)).reshape(-1).view(np.uint8))  # type: ignore[arg-type]

        return LazyPart(wanted, packed)

    def _integers(
        self, offset: int, size: int, dims: list[int], columns: int, taps: int, moved: int
    ) -> Callable[[], memoryview]:
        groups = dims[0] if taps else 1
        rows, rest = divmod(size, max(groups * columns, 1))
        inner = rows // max(taps, 1)
        wanted = [-(-columns // PANEL), -(-rows // FOUR), PANEL, FOUR]
        if rest or size <= 0 or taps < 0 or inner * max(taps, 1) != rows or dims != ([groups] if taps else []) + wanted:
            raise ValueError(f"a weight of the shape {dims} has {size} bytes")

        def packed() -> memoryview:
            plain = np.frombuffer(self._content(offset, size), np.uint8 if moved else np.int8)
            if taps:
                made = integer_conv_panels(plain.reshape(groups * columns, inner, taps), groups)
            else:
                made = integer_panels(plain.reshape(rows, columns))
            return memoryview(np.ascontiguousarray(made).reshape(-1).view(np.uint8))  # type: ignore[arg-type]

        return packed


def _gap(size: int) -> bytes:
    if size >= ALIGNMENT:
        raise ValueError(f"{size} bytes of its weights belong to none")
    return bytes(size)


def _further(header: Header, folder: DataFolder | None) -> Iterator[Stored]:
    for part in header.parts:
        if folder is None:
            raise NoSuchFile(f"the model goes on in the file {part.name!r}: open it by its path, not by its bytes")
        try:
            if Path(part.name).name != part.name:
                raise OutsideFolder("it is to lie beside the file")
            with folder.open(part.name) as file:
                contents = contents_of(file, repr(part.name), InvalidProtobuf)
        except (OSError, OutsideFolder) as e:
            why = e.strerror if isinstance(e, OSError) else e
            raise NoSuchFile(f"the model goes on in the file {part.name!r}, which cannot be opened: {why}") from e
        if size_of(contents) != part.size:
            raise InvalidProtobuf(f"{part.name!r} has {size_of(contents)} bytes, not {part.size}")
        yield contents

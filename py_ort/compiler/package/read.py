"""Reads `.pyort` files: what a session needs of one plan, its weights as the plan wants them."""

from __future__ import annotations

import json
import math
import os
import secrets
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from py_ort.compiler.layout.packing import FOUR, PANEL, integer_conv_panels, integer_panels, panels
from py_ort.compiler.load.digest import FileStamp
from py_ort.compiler.load.files import DataFolder, OutsideFolder, contents_of, open_file
from py_ort.compiler.load.metadata import ModelMetadata
from py_ort.compiler.package.format import ALIGNMENT, Form, Header, choose, read_header
from py_ort.compiler.placement.report import Placement
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidProtobuf, NoSuchFile, NotImplemented
from py_ort.schema.gen.Plan import Plan
from py_ort.schema.gen.PlanVersion import PlanVersion
from py_ort.wire.parts import LazyPart, Part

#: What damaged JSON and a damaged plan, which is read without looking at it as a whole, end in.
_DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError, struct.error)
#: Smaller weights are summed up when the plan is read, larger ones when they are asked for.
_SMALL = 1 << 16


@dataclass
class ExportedModel:
    """A plan of a file, as sessions want it; see `py_ort.runtime.planning.Planned`."""

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
    """A `.pyort` file, mapped; or one's bytes.

    Args:
        source: Path or bytes.

    Attributes:
        header: What it says of itself.

    Raises:
        NoSuchFile: It, or a part of it, is not there.
        InvalidProtobuf: It is damaged.
        NotImplemented: It is for another version of py_ort.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        if isinstance(source, (bytes, bytearray, memoryview)):
            first, folder, self._name = memoryview(source).cast("B"), None, "the .pyort file"
            self._scope = secrets.token_hex()
        else:
            self._name = repr(os.fspath(source))
            try:
                with open_file(source) as file:
                    first, self._scope = contents_of(file), str(FileStamp.of(file))
            except OSError as e:
                raise NoSuchFile(f"{os.fspath(source)!r} cannot be opened: {e.strerror}") from e
            folder = DataFolder.of(source)
        self.header, start = read_header(first)
        self.header.check(PlanVersion.current)
        self._checksums = dict(self.header.checksums)
        self._data = [first[start:], *_further(self.header, folder)]
        sizes = [piece.nbytes for piece in self._data]
        if sum(sizes) != self.header.size or any(size % ALIGNMENT for size in sizes[:-1]):
            raise InvalidProtobuf(
                f"{self._name} has {sum(sizes)} bytes of data, not {self.header.size}: it is cut off or damaged; copy "
                "it again, or export the model again"
            )

    def planned(self, providers: Sequence[str], shapes: Mapping[str, Sequence[int]]) -> ExportedModel:
        """Return the plan for these providers and shapes.

        Args:
            providers: Canonical names, in order.
            shapes: Those of the inputs, {}: any.

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
            parts = list(self._parts(plan, entry.weights))
        except _DAMAGE as e:
            raise InvalidProtobuf(f"{self._name} is damaged: {e}") from e
        return ExportedModel(plan, header.inputs, header.outputs, header.metadata, placement, self._scope, parts)

    def _content(self, offset: int, size: int) -> memoryview:
        """Return what was written there, and nothing else."""
        content = self._bytes(offset, size)
        if offset in self._checksums and size and zlib.crc32(content) != self._checksums[offset]:
            files = " or ".join(self._files_of(offset, offset + size))
            raise InvalidProtobuf(
                f"{files} is damaged: its {size} bytes of data from {offset} on are not those that were written "
                "(CRC-32). Copy it again, or export the model again"
            )
        return content

    def _files_of(self, start: int, end: int) -> Iterator[str]:
        at = 0
        for name, piece in zip([self._name, *(repr(part.name) for part in self.header.parts)], self._data, strict=True):
            if start < at + piece.nbytes and end > at:
                yield name
            at += piece.nbytes

    def _bytes(self, offset: int, size: int) -> memoryview:
        for piece in self._data:
            if offset < piece.nbytes or not size:
                if offset + size <= piece.nbytes:
                    return piece[offset : offset + size]
                rest = self._data[self._data.index(piece) + 1 :]
                return memoryview(b"".join((piece[offset:], *rest))[:size])
            offset -= piece.nbytes
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
            return (
                self._content(offset, size) if size < _SMALL else LazyPart(size, partial(self._content, offset, size))
            )
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


def _further(header: Header, folder: DataFolder | None) -> Iterator[memoryview]:
    for part in header.parts:
        if folder is None:
            raise NoSuchFile(f"the model goes on in the file {part.name!r}: open it by its path, not by its bytes")
        try:
            if Path(part.name).name != part.name:
                raise OutsideFolder("it is to lie beside the file")
            with folder.open(part.name) as file:
                contents = contents_of(file)
        except (OSError, OutsideFolder) as e:
            why = e.strerror if isinstance(e, OSError) else e
            raise NoSuchFile(f"the model goes on in the file {part.name!r}, which cannot be opened: {why}") from e
        if contents.nbytes != part.size:
            raise InvalidProtobuf(f"{part.name!r} has {contents.nbytes} bytes, not {part.size}")
        yield contents

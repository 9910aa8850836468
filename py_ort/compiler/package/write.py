"""Writes `.pyort` files; contents that several plans share are written once."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir

from py_ort.compiler import CompiledModel
from py_ort.compiler.load.model_files import replacing
from py_ort.compiler.package.format import ALIGNMENT, VERSION, Form, Header, PartEntry, PlanEntry
from py_ort.compiler.plan.weights import WeightEntry
from py_ort.providers import on_device
from py_ort.providers.wasm.packing import FOUR, PANEL
from py_ort.schema.gen.PlanVersion import PlanVersion

Place = tuple[int, ...]


@dataclass(frozen=True)
class Target:
    """Providers and shapes that a plan of the file is made for.

    Attributes:
        providers: Canonical names, best first.
        shapes: The inputs' shapes; {}: any that the model accepts.
    """

    providers: tuple[str, ...]
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in self.shapes.items())
        return " + ".join(self.providers) + (f" for {shapes}" if shapes else "")


def write_package(
    path: Path,
    producer: str,
    plans: Sequence[tuple[Target, CompiledModel]],
    part_size: int,
    written: Callable[[int, int], None] = lambda done, total: None,
) -> list[Path]:
    """Write a file, and further ones beside it where it would be larger than `part_size`.

    Each takes the place of the one that was there when it is whole.

    Args:
        path: The file.
        producer: See `Header`.
        plans: The preferred one first; inputs and outputs are the first one's.
        part_size: In bytes, a multiple of 64.
        written: Told how many bytes of how many are on the disk.

    Returns:
        The files.
    """
    data = _Data()
    # A page reads the file from its beginning: it needs its plan before the weights, and no placement.
    offsets = [data.add(compiled.plan) for _, compiled in plans]
    first_size = max(part_size, data.size)  # the plans are in the first file
    # A device's matrices first: panels can be made of them.
    order = sorted(range(len(plans)), key=lambda i: not any(map(on_device, plans[i][0].providers)))
    weights = {i: [data.weight(entry) for entry in plans[i][1].weights.entries] for i in order}
    entries = []
    for i, (target, compiled) in enumerate(plans):
        shapes = {name: list(shape) for name, shape in target.shapes.items()}
        text = json.dumps(compiled.placement.to_json(), separators=(",", ":")).encode()
        place = data.add(text), len(text)
        entries.append(PlanEntry(list(target.providers), shapes, offsets[i], len(compiled.plan), weights[i], place))
    first = plans[0][1]
    name, size = path.stem, data.size
    inputs, outputs = list(first.inputs), list(first.outputs)
    parts: list[PartEntry] = []
    if size > first_size:
        starts = range(first_size, size, part_size)
        parts = [PartEntry(f"{path.name}.{i}", min(part_size, size - at)) for i, at in enumerate(starts, 1)]
    header = Header(
        VERSION,
        PlanVersion.current,
        producer,
        name,
        inputs,
        outputs,
        first.metadata,
        entries,
        size,
        parts,
        data.checksums,
    )
    files = [path, *(path.parent / part.name for part in parts)]
    pieces = _Pieces(data.pieces())
    done = 0
    for i, file in enumerate(files):
        with replacing(file, 0o666) as out:  # less the umask: it is to be given away
            if i == 0:
                out.write(header.tobytes())
            for piece in pieces.take(part_size if i else first_size):
                out.write(piece)
                done += len(piece)
                written(done, size)
    _remove_further(path, len(parts))
    return files


class _Data:
    """The data of a file that is to be written: contents, each with its offset."""

    def __init__(self) -> None:
        self.size = 0
        #: Offset and CRC-32 of each content.
        self.checksums: list[tuple[int, int]] = []
        self._contents: list[Callable[[], bytes | memoryview]] = []
        self._offsets: dict[bytes, int] = {}
        #: Of each size the shapes of the weights that have it.
        self._shapes: dict[int, set[tuple[int, ...]]] = {}

    def add(self, content: bytes) -> int:
        """Take a content; return its offset."""
        return self._place(content, lambda: content)

    def weight(self, entry: WeightEntry) -> Place:
        """Add a weight, unless its bytes, or the same matrix in another order, were added before."""
        if entry.size == 0:
            return 0, 0, Form.AS_IS
        for form, matrix in self._matrices(entry):
            offset = self._offsets.get(_digest(matrix))
            if offset is not None:
                return offset, matrix.nbytes, *form
        self._shapes.setdefault(entry.size, set()).add(_shape(entry))
        return self._place(entry.buffer(), entry.buffer), entry.size, Form.AS_IS

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield all of the data, in order."""
        for content in self._contents:
            piece = content()
            yield piece
            yield bytes(-len(piece) % ALIGNMENT)

    def _place(self, content: bytes | memoryview, again: Callable[[], bytes | memoryview]) -> int:
        key = _digest(content)
        if key not in self._offsets:
            self._offsets[key] = self.size
            self.checksums.append((self.size, zlib.crc32(content)))
            self._contents.append(again)
            self.size += -(-len(content) // ALIGNMENT) * ALIGNMENT
        return self._offsets[key]

    def _matrices(self, entry: WeightEntry) -> Iterator[tuple[tuple[int, ...], memoryview]]:
        """Yield the matrices that a packed weight may come from, if the file has contents of their size."""
        shape = _shape(entry)
        if entry.tensor.dtype == ir.DataType.INT8 and len(shape) in (4, 5) and shape[-2:] == (PANEL, FOUR):
            yield from self._integer_matrices(entry, shape)
        if entry.tensor.dtype != ir.DataType.FLOAT or len(shape) not in (3, 4) or shape[-1] != PANEL:
            return
        groups, count, rows, _ = (1, *shape)[-4:]
        each = [n for n in range(count * PANEL, (count - 1) * PANEL, -1) if groups * rows * n * 4 in self._shapes]
        if not each:
            return
        packed = np.asarray(entry.tensor.numpy()).reshape(groups, count, rows, PANEL)
        whole = np.moveaxis(packed, 1, 2).reshape(groups, rows, count * PANEL)
        for columns in each:
            if whole[:, :, columns:].view(np.uint32).any():
                return  # panels are filled up with zeros, so these are columns
            plain = whole[:, :, :columns]
            yield (Form.MATRIX,), _bytes_of(plain.swapaxes(0, 1))
            if groups == 1:
                yield (Form.TRANSPOSED,), _bytes_of(plain[0].T)
            # A transposed convolution's, [kh, kw, C, M / group].
            for kh, kw, inner, width in {s for s in self._shapes[plain.nbytes] if len(s) == 4}:
                if inner == groups * rows and kh * kw * width == columns:
                    slices = plain.reshape(groups, rows, kh * kw, width)
                    yield (Form.SLICES, kh * kw), _bytes_of(np.moveaxis(slices, 2, 0))

    def _integer_matrices(
        self, entry: WeightEntry, shape: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], memoryview]]:
        groups, count, fours = (1, *shape)[-5:-2]
        sizes = [
            (columns, rows)
            for columns in range(count * PANEL, (count - 1) * PANEL, -1)
            for rows in range(fours * FOUR, (fours - 1) * FOUR, -1)
            if groups * columns * rows in self._shapes
        ]
        if not sizes:
            return
        packed = np.asarray(entry.tensor.numpy()).reshape(groups, count, fours, PANEL, FOUR)
        whole = packed.transpose(0, 2, 4, 1, 3).reshape(groups, fours * FOUR, count * PANEL)
        for columns, rows in sizes:
            if whole[:, rows:].any() or whole[:, :, columns:].any():
                continue  # panels are filled up with zeros, so these are columns
            plain = whole[:, :rows, :columns]
            found = [(0, plain[0])] if len(shape) == 4 else []
            for out, inner, *kernel in (s for s in self._shapes[plain.size] if len(s) > 2 and len(shape) == 5):
                taps = math.prod(kernel)
                if out == groups * columns and inner * taps == rows:
                    found.append((taps, plain.reshape(groups, taps, inner, columns).transpose(0, 3, 2, 1)))
            for taps, matrix in found:
                for moved in (0, 1):
                    content = _bytes_of(matrix ^ np.int8(-128) if moved else matrix)
                    yield (Form.INTEGERS, columns, taps, moved), content


class _Pieces:
    """Cuts pieces where a file ends."""

    def __init__(self, pieces: Iterator[bytes | memoryview]) -> None:
        self._pieces = pieces
        self._rest: memoryview = memoryview(b"")

    def take(self, size: int) -> Iterator[memoryview]:
        """Yield so many bytes, or all that are left."""
        while size > 0:
            if not self._rest.nbytes:
                piece = next(self._pieces, None)
                if piece is None:
                    return
                self._rest = memoryview(piece).cast("B")
            now, self._rest = self._rest[:size], self._rest[size:]
            size -= now.nbytes
            yield now


def _remove_further(path: Path, parts: int) -> None:
    """Parts of an earlier, larger file of this name are no longer anybody's."""
    number = parts + 1
    while (old := path.parent / f"{path.name}.{number}").exists():
        old.unlink()
        number += 1


def _shape(entry: WeightEntry) -> tuple[int, ...]:
    return tuple(int(size) for size in entry.tensor.shape)  # type: ignore[arg-type]


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.sha256(content).digest()


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]

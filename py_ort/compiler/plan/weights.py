"""The weights' blob: the place of each weight, and a writer that works piece by piece, without a second copy."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import OutOfMemory
from py_ort.ir.external_tensor import ExternalTensor
from py_ort.wire.parts import LazyPart, Part, whole

ALIGNMENT = 64
_MOST_BYTES = 1 << 32
_LARGEST_SIZE = (1 << 32) - 1


@dataclass(frozen=True)
class Piece:
    """Bytes of the blob; `location` and `offset` are their place in the model's external data, if they are there."""

    part: Part
    size: int
    location: str = ""
    offset: int = 0


@dataclass
class WeightEntry:
    """One constant of the plan.

    Attributes:
        name: Its value's name.
        tensor: Its contents, evaluated when they are written.
        offset: Where its bytes start in the blob (a multiple of 64).
        size: How many there are.
        places: Where it is read, as in the plan.
    """

    name: str
    tensor: ir.TensorProtocol
    offset: int
    size: int
    places: int = 0

    def tobytes(self) -> bytes:
        """Return the bytes: little-endian, C order, small integers packed as in ONNX."""
        return self.tensor.tobytes()

    def piece(self) -> Piece:
        """Return a weight's part of the blob; weights are packed at the first access."""
        tensor = self.tensor
        if isinstance(tensor, ir.LazyTensor):
            return Piece(LazyPart(self.size, self._checked), self.size)
        if isinstance(tensor, ExternalTensor):
            return Piece(tensor.contents, self.size, tensor.location, tensor.offset)
        return Piece(self._checked(), self.size)

    def _checked(self) -> memoryview:
        data = self.buffer()
        if data.nbytes != self.size:
            raise AssertionError(f"{self.name}: {data.nbytes} bytes, {self.size} planned")
        return data

    def buffer(self) -> memoryview:
        """Return the same bytes, without a copy where numpy holds them in this form."""
        if isinstance(self.tensor, ExternalTensor):
            return whole(self.tensor.contents)
        array = self.tensor.numpy()
        if sys.byteorder == "little" and array.nbytes == self.size and array.flags.c_contiguous:
            return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        return memoryview(self.tobytes())


@dataclass
class Weights:
    """All constants of a plan, in the order of `Plan.weights`, and its providers."""

    entries: list[WeightEntry] = field(default_factory=list)
    providers: list[str] = field(default_factory=list)
    size: int = 0
    _by_tensor: dict[int, WeightEntry] = field(default_factory=dict, repr=False)

    def add(self, name: str, tensor: ir.TensorProtocol, places: int) -> WeightEntry:
        """Append a constant; the same tensor object twice takes its room once.

        Raises:
            OutOfMemory: The constant is larger than the memory of any page.
        """
        twin = self._by_tensor.get(id(tensor))
        if twin is not None:
            entry = WeightEntry(name, tensor, twin.offset, twin.size, places)
        else:
            nbytes = 0 if tensor.dtype == ir.DataType.STRING else tensor.nbytes
            if nbytes > _MOST_BYTES or max(tensor.shape.numpy(), default=0) > _LARGEST_SIZE:
                shape = list(tensor.shape.numpy())
                raise OutOfMemory(
                    f"constant {name!r} of shape {shape} has {nbytes} bytes, and a page can hold at most {_MOST_BYTES} "
                    "bytes and sizes of 32 bits: split it"
                )
            entry = WeightEntry(name, tensor, self.size, nbytes, places)
            self.size += -(-nbytes // ALIGNMENT) * ALIGNMENT
            self._by_tensor[id(tensor)] = entry
        self.entries.append(entry)
        return entry

    def size_on(self, provider: str) -> int:
        """Return how many bytes of them a provider has where it reads them."""
        if provider not in self.providers:
            return 0
        place = 1 << self.providers.index(provider)
        entries = {entry.offset: entry for entry in self.entries}
        return sum(entry.size for entry in entries.values() if entry.places & place)

    def pieces(self) -> Iterator[Piece]:
        """Yield the blob piece by piece, padding included, without copying numpy arrays that have this form already."""
        written = 0
        for entry in self.entries:
            if entry.offset < written or entry.size == 0:
                continue  # shares the room of an earlier one
            yield entry.piece()
            padding = -entry.size % ALIGNMENT
            if padding:
                yield Piece(bytes(padding), padding)
            written = entry.offset + entry.size + padding

    def parts(self) -> list[Part]:
        """Return the blob as parts, one after the other."""
        return [piece.part for piece in self.pieces()]

    def chunks(self) -> Iterator[bytes]:
        """Yield the blob in pieces, tensor by tensor."""
        written = 0
        for entry in self.entries:
            if entry.offset < written or entry.size == 0:
                continue  # shares the room of an earlier one
            data = entry.tobytes()
            if len(data) != entry.size:
                raise AssertionError(f"{entry.name}: {len(data)} bytes, {entry.size} planned")
            yield data
            padding = -entry.size % ALIGNMENT
            if padding:
                yield bytes(padding)
            written = entry.offset + entry.size + padding

    def write(self, file: BinaryIO) -> None:
        """Write the blob."""
        for chunk in self.chunks():
            file.write(chunk)

    def tobytes(self) -> bytes:
        """Return the whole blob; for tests and small models."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()

    def digest(self) -> str:
        """Return a hash of the blob, the key under which equal weights are shared."""
        found = hashlib.sha256()
        for chunk in self.chunks():
            found.update(chunk)
        return found.hexdigest()

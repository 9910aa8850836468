"""The weights' blob: what lies where, written piece by piece so that no second copy of a big model is made."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import onnx_ir as ir

ALIGNMENT = 64


@dataclass
class WeightEntry:
    """One constant of the plan.

    Attributes:
        name: Its value's name.
        tensor: Its contents, evaluated when they are written.
        offset: Where its bytes start in the blob (a multiple of 64).
        size: How many there are.
        on_cpu: The CPU reads it.
        on_gpu: A GPU kernel reads it.
    """

    name: str
    tensor: ir.TensorProtocol
    offset: int
    size: int
    on_cpu: bool = False
    on_gpu: bool = False

    def tobytes(self) -> bytes:
        """Return the bytes: little-endian, C order, small integers packed as in ONNX."""
        return self.tensor.tobytes()

    def buffer(self) -> memoryview:
        """Return the same bytes, without a copy where numpy holds them in this form."""
        array = self.tensor.numpy()
        if sys.byteorder == "little" and array.nbytes == self.size and array.flags.c_contiguous:
            return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        return memoryview(self.tobytes())


@dataclass
class Weights:
    """All constants of a plan, in the order of `Plan.weights`."""

    entries: list[WeightEntry] = field(default_factory=list)
    size: int = 0
    _by_tensor: dict[int, WeightEntry] = field(default_factory=dict, repr=False)

    def add(self, name: str, tensor: ir.TensorProtocol, *, on_cpu: bool, on_gpu: bool) -> WeightEntry:
        """Append a constant; the same tensor object twice takes its room once."""
        twin = self._by_tensor.get(id(tensor))
        if twin is not None:
            entry = WeightEntry(name, tensor, twin.offset, twin.size, on_cpu, on_gpu)
        else:
            nbytes = 0 if tensor.dtype == ir.DataType.STRING else tensor.nbytes
            entry = WeightEntry(name, tensor, self.size, nbytes, on_cpu, on_gpu)
            self.size += -(-nbytes // ALIGNMENT) * ALIGNMENT
            self._by_tensor[id(tensor)] = entry
        self.entries.append(entry)
        return entry

    def buffers(self) -> list[memoryview]:
        """Return the blob as buffers one after the other, without a copy of what numpy has in this form already."""
        found: list[memoryview] = []
        written = 0
        for entry in self.entries:
            if entry.offset < written or entry.size == 0:
                continue  # shares the room of an earlier one
            data = entry.buffer()
            if data.nbytes != entry.size:
                raise AssertionError(f"{entry.name}: {data.nbytes} bytes, {entry.size} planned")
            padding = -entry.size % ALIGNMENT
            found += [data, memoryview(bytes(padding))] if padding else [data]
            written = entry.offset + entry.size + padding
        return found

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

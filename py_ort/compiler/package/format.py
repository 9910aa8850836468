"""The format of a `.pyort` file: plans for several targets, and the weights that they share.

    8 bytes magic | u32 size of header | u32 its CRC-32 | header: JSON, spaces up to a multiple of 64 | data

Numbers are little-endian. In the data, plans, weights and placements start at multiples of 64; offsets count from where
the data begin. The data may go on in further files, whose names and sizes the header tells. The header has a CRC-32 of
each content of the data: a page sums contents up as they come, in whatever pieces. web/src/package reads this, too:
`Header` and what it is made of are declared there as well, and a test compares them.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum

from py_ort.compiler.load.metadata import ModelMetadata
from py_ort.compiler.load.model_files import open_file
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidProtobuf, NotImplemented
from py_ort.typed_json import read
from py_ort.wire.parts import Stored, StreamedPart, cut, size_of, whole

MAGIC = b"PYORT\r\n\x1a"
#: Raised when a file means something else than before. No other one is read: the first had no checksums.
VERSION = 2
ALIGNMENT = 64
PREFIX = struct.Struct("<8sII")
#: Limit of a header's size, so that a damaged file cannot request all memory.
_LARGEST_HEADER = 1 << 28
_AGAIN = "Copy it again, or export the model again"


class Form(IntEnum):
    """The conversion from a weight's bytes in the file to the bytes that its plan needs.

    The wasm kernels read matrices in panels of eight columns, zero-filled, the WebGPU kernels row by row: the file has
    them once.
    """

    AS_IS = 0
    #: A float32 matrix [rows, groups, columns], to be [groups, ceil(columns / 8), rows, 8].
    MATRIX = 1
    #: A float32 matrix [columns, rows], to be [ceil(columns / 8), rows, 8].
    TRANSPOSED = 2
    #: A float32 tensor [slices, groups, rows, columns], to be [groups, ceil(slices · columns / 8), rows, 8].
    SLICES = 3
    #: 8-bit integers: a matrix [rows, columns], to be [ceil(columns / 8), ceil(rows / 4), 8, 4], or the weights of a
    #: convolution, [groups · columns, channels, taps], to be [groups, ceil(columns / 8), ceil(taps · channels / 4), 8,
    #: 4].
    INTEGERS = 4


@dataclass(frozen=True)
class PlanEntry:
    """One plan.

    Attributes:
        providers: The providers that its nodes run on, best first.
        shapes: The inputs' shapes that it was compiled for; empty: any that the model accepts.
        offset: Where it lies in the data.
        size: Its bytes.
        weights: For each weight of the plan its offset in the data, its size there, and its `Form`; of
            `Form.SLICES` how many there are, too; of `Form.INTEGERS` columns, taps (0: a matrix), and 1 where the file
            has uint8 and the plan int8, less 128.
        placement: Offset and size of the placement of nodes, as JSON.
    """

    providers: list[str]
    shapes: dict[str, list[int]]
    offset: int
    size: int
    weights: list[tuple[int, ...]]
    placement: tuple[int, int]

    def is_for(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Return True if the plan was made for these shapes of inputs; {}: for all."""
        return self.shapes == {name: list(shape) for name, shape in shapes.items()}


@dataclass(frozen=True)
class PartEntry:
    """A further file, beside the first.

    Attributes:
        name: Its name, without a folder.
        size: Its bytes.
    """

    name: str
    size: int


@dataclass(frozen=True)
class Header:
    """The header of a file.

    Attributes:
        version: The format's version.
        plan_version: `PlanVersion` of its plans.
        producer: Who wrote it: "py_ort" and a version.
        name: The model's.
        inputs: As `InferenceSession.get_inputs` gives them.
        outputs: Likewise.
        metadata: The model's own description: author, version, ….
        plans: The preferred one first.
        size: Bytes of the data, in this file and its parts.
        parts: Files in which the data go on.
        checksums: Where each content of the data starts, and its CRC-32.
    """

    version: int
    plan_version: int
    producer: str
    name: str
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    metadata: ModelMetadata
    plans: list[PlanEntry]
    size: int
    parts: list[PartEntry] = field(default_factory=list)
    checksums: list[tuple[int, int]] = field(default_factory=list)

    def tobytes(self) -> bytes:
        """Return all that comes before the data."""
        text = json.dumps(asdict(self), separators=(",", ":")).encode()
        text += b" " * (-(PREFIX.size + len(text)) % ALIGNMENT)
        return PREFIX.pack(MAGIC, len(text), zlib.crc32(text)) + text

    def check(self, reads_plans: int) -> None:
        """See that this py_ort can use the file, whose numbers fit each other.

        Args:
            reads_plans: The version of plans that the core reads.

        Raises:
            NotImplemented: It is for another version.
            InvalidProtobuf: It is damaged.
        """
        if self.plan_version != reads_plans:
            raise NotImplemented(
                f"the file has plans of version {self.plan_version}, written by {self.producer}, and this py_ort reads "
                f"version {reads_plans}: export the model again with this py_ort (`py-ort export MODEL`), or install "
                "the one that wrote it"
            )
        if any(len(place) < 3 for plan in self.plans for place in plan.weights):
            raise InvalidProtobuf(f"the .pyort file is damaged: a weight has no size or form. {_AGAIN}")
        regions = [(plan.offset, plan.size) for plan in self.plans]
        regions += [(offset, size) for plan in self.plans for offset, size, *_ in plan.weights]
        regions += [plan.placement for plan in self.plans]
        if any(not 0 <= offset <= offset + size <= self.size for offset, size in regions):
            raise InvalidProtobuf(f"the .pyort file is damaged: a part is past its end. {_AGAIN}")
        summed = {offset for offset, _ in self.checksums}
        if any(size and offset not in summed for offset, size in regions):
            raise InvalidProtobuf(f"the .pyort file is damaged: a part has no checksum. {_AGAIN}")


def begins(data: bytes | bytearray | memoryview) -> bool:
    """Return True if a file with these first bytes is a `.pyort` file."""
    return bytes(data[: len(MAGIC)]) == MAGIC


def is_package(source: str | os.PathLike[str] | bytes) -> bool:
    """Return True if a model is a `.pyort` file, by its first bytes; False if it cannot be opened."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return begins(source)
    try:
        with open_file(source) as file:
            return begins(file.read(16))
    except OSError:
        return False


def read_header(data: bytes | bytearray | Stored) -> tuple[Header, int]:
    """Read the header at the beginning of a file; return it and where the data begin.

    Raises:
        InvalidProtobuf: It is none, or damaged.
        NotImplemented: It is of another version of the format.
    """
    file = data if isinstance(data, StreamedPart) else memoryview(data)
    prefix = whole(cut(file, 0, min(PREFIX.size, size_of(file))))
    if len(prefix) < PREFIX.size or not begins(prefix):
        raise InvalidProtobuf("this is no .pyort file; `py-ort export MODEL.onnx` writes one")
    _, size, checksum = PREFIX.unpack(prefix)
    there = min(size, size_of(file) - PREFIX.size)
    text = bytes(whole(cut(file, PREFIX.size, there))) if size <= _LARGEST_HEADER else b""
    if len(text) != size or zlib.crc32(text) != checksum:
        raise InvalidProtobuf("the .pyort file is cut off, or its header is damaged")
    try:
        told = json.loads(text)
        if isinstance(told, Mapping) and told.get("version") != VERSION:
            raise NotImplemented(
                f"the .pyort file is of version {told.get('version')}, written by {told.get('producer')}, and this "
                f"py_ort reads version {VERSION}: export the model again with this py_ort (`py-ort export MODEL`)"
            )
        header = read(Header, told)
    except (ValueError, TypeError, RecursionError) as e:
        raise InvalidProtobuf(f"the header of the .pyort file is not what it should be: {e}") from None
    return header, PREFIX.size + size


def choose(plans: Sequence[PlanEntry], providers: Sequence[str], shapes: Mapping[str, Sequence[int]]) -> int | None:
    """Return the number of the plan for these providers and shapes; None if there is none.

    Args:
        plans: The plans of a file.
        providers: Canonical names, in order.
        shapes: The inputs' shapes; {}: any.
    """
    fitting = (i for i, plan in enumerate(plans) if plan.providers == list(providers) and plan.is_for(shapes))
    return next(fitting, None)

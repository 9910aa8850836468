"""Bytes to serve in pieces: stored in memory, made on request, or read from a file in pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from socket import socket
from typing import TypeAlias

#: Size in bytes below which parts of a file are read into memory at once.
SMALL = 1 << 16


@dataclass(frozen=True)
class LazyPart:
    """Bytes that are made on request, perhaps more than once.

    Attributes:
        size: Number of bytes.
        make: Returns the bytes.
    """

    size: int
    make: Callable[[], memoryview]


@dataclass(frozen=True)
class StreamedPart:
    """Bytes that are read on request, any range of them.

    Attributes:
        size: Number of bytes.
        read: Returns bytes; the arguments are an offset and a number.
        send: Sends bytes to a socket; the arguments after the socket are as for `read`.
    """

    size: int
    read: Callable[[int, int], memoryview]
    send: Callable[[socket, int, int], None]

    def make(self) -> memoryview:
        """Return all bytes."""
        return self.read(0, self.size)


Part: TypeAlias = "bytes | bytearray | memoryview | LazyPart | StreamedPart"
#: Bytes that exist already, in memory or in a file.
Stored: TypeAlias = "memoryview | StreamedPart"


def size_of(part: Part) -> int:
    """Return the number of bytes."""
    return part.size if isinstance(part, (LazyPart, StreamedPart)) else memoryview(part).nbytes


def whole(part: Part) -> memoryview:
    """Return the bytes."""
    return part.make() if isinstance(part, (LazyPart, StreamedPart)) else memoryview(part)


def cut(part: Stored, offset: int, size: int) -> Stored:
    """Return a range of a part; a small range is read at once."""
    if not isinstance(part, StreamedPart):
        return part[offset : offset + size]
    if size < SMALL:
        return part.read(offset, size)
    return StreamedPart(
        size,
        lambda start, length: part.read(offset + start, length),
        lambda connection, start, length: part.send(connection, offset + start, length),
    )


def send(connection: socket, part: Stored) -> None:
    """Send a part to a socket."""
    if isinstance(part, StreamedPart):
        part.send(connection, 0, part.size)
    else:
        connection.sendall(part)

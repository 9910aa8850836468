"""Bytes to serve in pieces: in memory, made when somebody asks for them, or read from a file piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from socket import socket
from typing import TypeAlias

#: Parts below this size are in memory: those of a file are read together with what needs them.
SMALL = 1 << 16


@dataclass(frozen=True)
class LazyPart:
    """Bytes that are made on demand, perhaps more than once.

    Attributes:
        size: How many.
        make: Returns them.
    """

    size: int
    make: Callable[[], memoryview]


@dataclass(frozen=True)
class StreamedPart:
    """Bytes that are read on demand, as many as somebody asks for.

    Attributes:
        size: How many.
        read: Returns the bytes from an offset on, so many.
        send: Sends the same bytes to a socket.
    """

    size: int
    read: Callable[[int, int], memoryview]
    send: Callable[[socket, int, int], None]

    def make(self) -> memoryview:
        """Return all of them."""
        return self.read(0, self.size)


Part: TypeAlias = "bytes | bytearray | memoryview | LazyPart | StreamedPart"
#: Bytes that are there: in memory, or in a file.
Stored: TypeAlias = "memoryview | StreamedPart"


def size_of(part: Part) -> int:
    """Return the number of bytes."""
    return part.size if isinstance(part, (LazyPart, StreamedPart)) else memoryview(part).nbytes


def whole(part: Part) -> memoryview:
    """Return the bytes."""
    return part.make() if isinstance(part, (LazyPart, StreamedPart)) else memoryview(part)


def cut(part: Stored, offset: int, size: int) -> Stored:
    """Return a part of a part; a small one is read at once."""
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

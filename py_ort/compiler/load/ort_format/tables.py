"""Unverified tables of FlatBuffers: each field of a class knows its place, is read at its access, and checked then.

The package `flatbuffers` has no verifier for Python. Here a read that leads out of the file is an error of `struct` or
numpy; that parts lie in each other, so that a small file becomes a huge model, a budget of reads tells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, overload

import numpy as np
from flatbuffers import number_types
from flatbuffers.table import Table as Position

#: How often its own size may be read of a file: names are written once and used often, all else is there once.
_READS = 64
_FIRST_FIELD = 4  # before a table's fields its list of them has two numbers of 16 bits

F = TypeVar("F")
T = TypeVar("T", bound="Table")


class Damaged(Exception):
    """This is no file of the format."""


class Budget:
    """How many bytes may still be read of a file."""

    def __init__(self, size: int) -> None:
        self.left = _READS * size

    def spend(self, count: int) -> None:
        """Take bytes from it.

        Raises:
            Damaged: There are none left.
        """
        self.left -= count
        if self.left < 0:
            raise Damaged("its parts lie in each other")


class Table:
    """A table of a file. Subclasses declare the fields; `kind=` of a field selects another class.

    Args:
        data: The file.
        at: Where the table begins.
        budget: Shared by all tables of the file.
    """

    def __init__(self, data: bytes, at: int, budget: Budget) -> None:
        budget.spend(_FIRST_FIELD)
        self.position, self.budget = Position(data, at), budget

    @classmethod
    def root(cls: type[T], data: bytes) -> T:
        """Return the table that a file is."""
        return cls(data, Position(data, 0).Indirect(0), Budget(len(data)))

    def at(self, place: int, kind: type[T]) -> T:
        """Return the table that an offset at a place leads to."""
        return kind(self.position.Bytes, self.position.Indirect(place), self.budget)

    def bytes_at(self, place: int) -> bytes:
        """Return the string that an offset at a place leads to."""
        text = bytes(self.position.String(place))
        self.budget.spend(len(text))
        return text


class Field(Generic[F]):
    """A field of a table, as an attribute of its class.

    Args:
        number: Its place among the table's fields, from 0.
        read: Reads it, from a table and the place of the field.
        default: Its value if the file does not have it.
    """

    def __init__(self, number: int, read: Callable[[Table, int], F], default: F) -> None:
        self._entry, self._read, self._default = _FIRST_FIELD + 2 * number, read, default

    @overload
    def __get__(self, table: None, owner: type) -> Field[F]: ...
    @overload
    def __get__(self, table: Table, owner: type) -> F: ...
    def __get__(self, table: Table | None, owner: type) -> F | Field[F]:
        if table is None:
            return self
        offset = table.position.Offset(self._entry)
        return self._read(table, table.position.Pos + offset) if offset else self._default


_INTEGERS = {
    "int8": number_types.Int8Flags,
    "uint8": number_types.Uint8Flags,
    "int32": number_types.Int32Flags,
    "int64": number_types.Int64Flags,
}


def integer(number: int, dtype: str, default: int = 0) -> Field[int]:
    """Declare an integer of a dtype."""
    flags = _INTEGERS[dtype]
    return Field(number, lambda table, place: int(table.position.Get(flags, place)), default)


def float32(number: int) -> Field[float]:
    """Declare a number."""
    return Field(number, lambda table, place: float(table.position.Get(number_types.Float32Flags, place)), 0.0)


def text(number: int) -> Field[str]:
    """Declare a text; bytes that are none are written as `\\xff`."""
    return Field(number, lambda table, place: readable(table.bytes_at(place)), "")


def raw(number: int) -> Field[bytes]:
    """Declare a string of bytes."""
    return Field(number, Table.bytes_at, b"")


def vector(number: int, dtype: str) -> Field[np.ndarray]:
    """Declare a list of numbers of a dtype."""
    empty = np.zeros(0, dtype)

    def read(table: Table, place: int) -> np.ndarray:
        start = place - table.position.Pos
        count = table.position.VectorLen(start)
        table.budget.spend(count * empty.itemsize)
        return np.frombuffer(table.position.Bytes, empty.dtype, count, table.position.Vector(start)) if count else empty

    return Field(number, read, empty)


def table(number: int, kind: Callable[[], type[T]]) -> Field[T | None]:
    """Declare a table; its class is asked for later, as tables hold each other."""
    return Field(number, lambda table, place: table.at(place, kind()), None)


def _items(read: Callable[[Table, int], F]) -> Callable[[Table, int], list[F]]:
    def items(table: Table, place: int) -> list[F]:
        start = place - table.position.Pos
        first = table.position.Vector(start)
        found = []
        for number in range(table.position.VectorLen(start)):
            table.budget.spend(_FIRST_FIELD)
            found.append(read(table, first + 4 * number))
        return found

    return items


def tables(number: int, kind: Callable[[], type[T]]) -> Field[list[T]]:
    """Declare a list of tables."""
    return Field(number, _items(lambda table, place: table.at(place, kind())), [])


def raws(number: int) -> Field[list[bytes]]:
    """Declare a field that is a list of bytes objects."""
    return Field(number, _items(Table.bytes_at), [])


def texts(number: int) -> Field[list[str]]:
    """Declare a list of texts."""
    return Field(number, _items(lambda table, place: readable(table.bytes_at(place))), [])


def readable(text: bytes) -> str:
    """Return a text, each byte that is none as `\\xff`."""
    return text.decode("utf-8", "backslashreplace")

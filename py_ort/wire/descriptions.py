"""Vectors of `TensorDesc` read at once: the generated accessors look each field up anew."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from py_ort.schema.gen.TensorDesc import TensorDescT

_Reader = Callable[[bytes, int], Any]


def read_descriptions(data: bytes, at: int) -> list[TensorDescT]:
    """Return the tables of a vector.

    Args:
        data: The message's header.
        at: Where it says how far from here the vector is.

    Raises:
        struct.error, UnicodeDecodeError: It is damaged.
    """
    return _Descriptions(data).vector(at)


def _number(form: str) -> _Reader:
    unpack = struct.Struct(form).unpack_from
    return lambda data, at: unpack(data, at)[0]


_byte, _word, _long = _number("<B"), _number("<I"), _number("<Q")


def _text(data: bytes, at: int) -> str:
    at += _word(data, at)
    return data[at + 4 : at + 4 + _word(data, at)].decode()


def _words(data: bytes, at: int) -> list[int]:
    at += _word(data, at)
    return list(struct.unpack_from(f"<{_word(data, at)}I", data, at + 4))


class _Descriptions:
    """Those of one message; tables of one form share what says where their fields are."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._forms: dict[int, list[tuple[str, int, _Reader]]] = {}
        #: In the order of messages.fbs.
        self._fields: list[tuple[str, _Reader]] = [
            ("name", _text),
            ("dtype", _byte),
            ("dims", _words),
            ("location", _byte),
            ("gpuId", _word),
            ("offset", _long),
            ("size", _long),
            ("kind", _byte),
            ("items", lambda data, at: self.vector(at)),
        ]

    def vector(self, at: int) -> list[TensorDescT]:
        at += _word(self._data, at)
        places = struct.unpack_from(f"<{_word(self._data, at)}I", self._data, at + 4)
        return [self._table(at + 4 + 4 * i + place) for i, place in enumerate(places)]

    def _table(self, at: int) -> TensorDescT:
        form = at - struct.unpack_from("<i", self._data, at)[0]
        fields = self._forms.get(form)
        if fields is None:
            fields = self._forms[form] = self._form(form)
        made = TensorDescT()
        for name, offset, read in fields:
            setattr(made, name, read(self._data, at + offset))
        return made

    def _form(self, at: int) -> list[tuple[str, int, _Reader]]:
        (size,) = struct.unpack_from("<H", self._data, at)
        count = min((size - 4) // 2, len(self._fields))
        offsets = struct.unpack_from(f"<{count}H", self._data, at + 4)
        return [(name, offset, read) for (name, read), offset in zip(self._fields, offsets, strict=False) if offset]

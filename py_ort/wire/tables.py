"""Fast readers for the tables of a run's answer.

The generated accessors look up each field anew, and the answer to a decoder's step may describe 33 outputs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from py_ort.schema.gen.Message import MessageT
from py_ort.schema.gen.RunResult import RunResultT
from py_ort.schema.gen.TensorDesc import TensorDescT

_Reader = Callable[[bytes, int], Any]
#: Number of forms remembered for each kind of table.
_KEPT = 64


def read_message(data: bytes) -> MessageT:
    """Return the message of a header; its `body` is the body's offset.

    Raises:
        struct.error: The header is damaged.
    """
    message: MessageT = _MESSAGE.read(data, _word(data, 0))
    return message


def read_run_result(data: bytes, at: int) -> RunResultT:
    """Return the body of an answer to a run.

    Args:
        data: The message's header.
        at: The body's offset.

    Raises:
        struct.error, UnicodeDecodeError: The header is damaged.
    """
    result: RunResultT = _RUN_RESULT.read(data, at)
    return result


class _Table:
    """A kind of table. Tables of one form have their fields at the same offsets.

    Args:
        make: Returns a new object of the generated API.
        fields: The reader of each field, in the order of messages.fbs.
    """

    def __init__(self, make: Callable[[], Any], fields: dict[str, _Reader]) -> None:
        self._make, self._fields = make, list(fields.items())
        self._forms: dict[bytes, list[tuple[str, int, _Reader]]] = {}

    def read(self, data: bytes, at: int) -> Any:
        start = at - _offset(data, at)
        form = data[start : start + _size(data, start)]
        fields = self._forms.get(form)
        if fields is None:
            fields = self._learn(form)
        made = self._make()
        for name, place, read in fields:
            setattr(made, name, read(data, at + place))
        return made

    def _learn(self, form: bytes) -> list[tuple[str, int, _Reader]]:
        count = min((len(form) - 4) // 2, len(self._fields))
        places = struct.unpack_from(f"<{count}H", form, 4)
        if len(self._forms) >= _KEPT:
            self._forms.clear()
        found = [(name, place, read) for (name, read), place in zip(self._fields, places, strict=False) if place]
        self._forms[form] = found
        return found


def _number(form: str) -> _Reader:
    unpack = struct.Struct(form).unpack_from
    return lambda data, at: unpack(data, at)[0]


_byte, _size, _word, _offset, _long = map(_number, ("<B", "<H", "<I", "<i", "<Q"))


def _place(data: bytes, at: int) -> int:
    return at + _word(data, at)


def _text(data: bytes, at: int) -> str:
    at = _place(data, at)
    return data[at + 4 : at + 4 + _word(data, at)].decode()


def _words(data: bytes, at: int) -> list[int]:
    at = _place(data, at)
    return list(struct.unpack_from(f"<{_word(data, at)}I", data, at + 4))


def _descriptions(data: bytes, at: int) -> list[TensorDescT]:
    first = _place(data, at) + 4
    return [_TENSOR_DESC.read(data, first + 4 * i + place) for i, place in enumerate(_words(data, at))]


_MESSAGE = _Table(MessageT, {"id": _word, "bodyType": _byte, "body": _place, "payloadSize": _long})
_RUN_RESULT = _Table(RunResultT, {"outputs": _descriptions, "info": _text})
_TENSOR_DESC = _Table(
    TensorDescT,
    {
        "name": _text,
        "dtype": _byte,
        "dims": _words,
        "location": _byte,
        "gpuId": _word,
        "offset": _long,
        "size": _long,
        "kind": _byte,
        "items": _descriptions,
    },
)

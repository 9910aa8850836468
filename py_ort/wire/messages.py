"""The FlatBuffers header of a message, packed and unpacked.

Bodies are objects of the generated API: `RunT`, `ErrorT`, … from `py_ort.schema.gen`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import flatbuffers

from py_ort.exceptions import ProtocolError
from py_ort.schema.gen.Body import Body
from py_ort.schema.gen.Message import Message, MessageT
from py_ort.wire.framing import Buffer
from py_ort.wire.tables import read_message, read_run_result

IDENTIFIER = b"PMSG"
_NAMES = {number: name for name, number in vars(Body).items() if name[0] != "_"}


class Received(NamedTuple):
    """A message from the page; `kind` is the type of its body, as "RunResult"."""

    id: int
    kind: str
    body: Any
    payload: memoryview


def encode(request: int, body: Any, payload_size: int = 0, *, whole: bool = False) -> bytes:
    """Return the header of a message with this body.

    Args:
        request: The request's number.
        body: An object of the generated API.
        payload_size: Size of the payload in bytes.
        whole: True to include numbers that have their default values.
    """
    message = MessageT()
    message.id = request
    message.bodyType = getattr(Body, type(body).__name__.removesuffix("T"))
    message.body = body
    message.payloadSize = payload_size
    builder = flatbuffers.Builder(256)
    builder.ForceDefaults(whole)
    builder.Finish(message.Pack(builder), IDENTIFIER)
    return bytes(builder.Output())


class Prepared:
    """A message whose header is packed, with a place for the request's number.

    Args:
        name: The type of its body.
        session: The page's number of the session.
        header: The packed header; the message owns it from now on.
        at: Offset of the request's number in the header.
    """

    def __init__(self, name: str, session: int, header: bytearray, at: int) -> None:
        self.name, self.session, self._header, self._at = name, session, header, at

    def header(self, request: int) -> bytes:
        """Return the header of this message with a request's number."""
        struct.pack_into("<I", self._header, self._at, request)
        return bytes(self._header)


def field_at(table: Any, field: int) -> int:
    """Return the offset of a table's field, given by its index in the schema; of a vector, that of its reference."""
    return table.Pos + table.Offset(4 + 2 * field)


def decode(header: Buffer, payload: memoryview) -> Received:
    """Return the message of a header.

    Raises:
        ProtocolError: The bytes are not a message.
    """
    data = bytes(header)
    if data[4:8] != IDENTIFIER:
        raise ProtocolError(f"expected a message of this protocol, got {data[:16]!r}")
    try:
        message = read_message(data)
        if message.bodyType == Body.RunResult:
            message.body = message.body and read_run_result(data, message.body)
        else:
            message = MessageT.InitFromObj(Message.GetRootAs(data))
            _decode_texts(message)
    except (struct.error, IndexError, TypeError, ValueError, UnicodeDecodeError) as e:
        raise ProtocolError(f"a broken message header: {e}") from e
    if message.body is None:
        raise ProtocolError(f"message {message.id} has no body that this version knows (type {message.bodyType})")
    if not message.payloadSize <= len(payload):
        raise ProtocolError(f"message {message.id} announces {message.payloadSize} bytes and brings {len(payload)}")
    return Received(message.id, _NAMES[message.bodyType], message.body, payload[: message.payloadSize])


def _decode_texts(thing: Any) -> None:
    """Decode the bytes in FlatBuffers' Python objects to str, and turn vectors of numbers into lists."""
    for name, value in vars(thing).items():
        if isinstance(value, bytes):
            setattr(thing, name, value.decode())
        elif isinstance(value, list):
            for i, item in enumerate(value):
                if isinstance(item, bytes):
                    value[i] = item.decode()
                elif hasattr(item, "__dict__"):
                    _decode_texts(item)
        elif hasattr(value, "tolist"):
            setattr(thing, name, value.tolist())
        elif hasattr(value, "__dict__"):
            _decode_texts(value)

"""The bridge between Python and a page, without I/O: bytes become messages, and messages bytes.

`framing` cuts messages into websocket frames, `messages` packs their FlatBuffers headers, `tensors` converts between
numpy arrays and payloads, `state` assigns answers to requests. docs/internals.md, section 1, describes the format.
"""

from py_ort.wire.framing import FRAME_SIZE, Assembler, frames
from py_ort.wire.messages import Prepared, Received, decode, encode
from py_ort.wire.state import Answer, Connection, Logits, LogLine, NewTokens, ProgressReport, remote_error
from py_ort.wire.tensors import Layout, from_description, pack

__all__ = [
    "FRAME_SIZE",
    "Answer",
    "Assembler",
    "Connection",
    "Layout",
    "LogLine",
    "Logits",
    "NewTokens",
    "Prepared",
    "ProgressReport",
    "Received",
    "decode",
    "encode",
    "frames",
    "from_description",
    "pack",
    "remote_error",
]

"""The bridge between Python and a page, without I/O: bytes in, messages out, and the other way round.

`framing` cuts messages into websocket frames, `messages` packs their FlatBuffers headers, `tensors` moves numpy arrays
in and out of payloads, `state` knows which request an answer belongs to. The format: docs/internals.md, section 1.
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

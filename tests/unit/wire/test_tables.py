"""Descriptions of tensors are read directly, with the same results as FlatBuffers' own classes."""

from typing import Any

import numpy as np
import pytest

from py_ort.exceptions import ProtocolError
from py_ort.schema.gen.Message import Message, MessageT
from py_ort.schema.gen.RunResult import RunResultT
from py_ort.wire import Layout, decode, encode
from py_ort.wire.tensors import on_gpu, pack
from py_ort.wire.values import pack_value

NOTHING = memoryview(bytes(4096))


def result(whole: bool = False, info: str = '{"run_ms": 1}') -> bytes:
    layout = Layout()
    body = RunResultT()
    body.info = info
    body.outputs = [
        on_gpu("present.0.key", 1, [1, 8, 513, 64], 1 << 31),
        pack("größe", np.float32(3), layout),
        pack("", np.zeros((2, 0, 5), np.int64), layout),
        pack_value("parts", [np.ones(3, np.float32), np.ones((2, 2), np.float32)], "seq(tensor(float))", layout),
        pack_value("maybe", None, "optional(tensor(float))", layout),
        on_gpu("present.1.key", 10, [7], 3),
    ]
    return bytes(encode(5, body, layout.size, whole=whole))


def _plain(thing: Any) -> Any:
    if isinstance(thing, list):
        return [_plain(item) for item in thing]
    if isinstance(thing, bytes):
        return thing.decode()
    if hasattr(thing, "tolist"):
        return thing.tolist()
    return {name: _plain(value) for name, value in vars(thing).items()} if hasattr(thing, "__dict__") else thing


@pytest.mark.parametrize("whole", [False, True])
def test_they_are_what_the_generated_classes_read(whole: bool) -> None:
    header = result(whole)
    received = decode(header, NOTHING)
    expected = MessageT.InitFromObj(Message.GetRootAs(header))
    assert (received.id, received.kind) == (5, "RunResult")
    assert _plain(received.body) == _plain(expected.body)


def test_damaged_headers_are_refused_or_read() -> None:
    """For any byte, the only error is `ProtocolError`."""
    header, refused = result(), 0
    for at in range(8, len(header)):
        for value in (0, 0x7F, 0xFF):
            damaged = header[:at] + bytes([value]) + header[at + 1 :]
            try:
                decode(damaged, NOTHING)
            except ProtocolError:
                refused += 1
    assert refused > 100


def test_a_result_without_outputs() -> None:
    body = RunResultT()
    received = decode(encode(1, body), NOTHING)
    assert not received.body.outputs and not received.body.info

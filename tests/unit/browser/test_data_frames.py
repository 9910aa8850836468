"""Frames of data, read and written, equal those of the websockets package, however the bytes arrive."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from py_ort.browser.data_frames import FrameReader, framed

LIMIT = 1 << 17
SIZES = st.sampled_from([0, 1, 3, 125, 126, 127, 65535, 65536, LIMIT])
FRAMES = st.tuples(st.sampled_from([Opcode.BINARY, Opcode.CONT, Opcode.PING, Opcode.PONG]), st.booleans(), SIZES)


class Told:
    """A reader's reports on the bytes that it was given in parts of a size."""

    def __init__(self, data: bytes, part: int) -> None:
        self.data = self.others = b""
        reader = FrameReader(LIMIT, self._add_data, self._add_others)
        for at in range(0, len(data), part):
            reader.read(data[at : at + part])

    def _add_data(self, part: memoryview) -> None:
        assert part
        self.data += part

    def _add_others(self, part: bytes) -> None:
        self.others += part


def content(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@settings(deadline=None)
@given(frames=st.lists(FRAMES, max_size=6), part=st.sampled_from([1 << 20, 70_000, 1000, 7]))
def test_data_is_told_apart_from_pings(frames, part):
    sent = expected = others = b""
    for opcode, last, size in frames:
        ping = opcode in (Opcode.PING, Opcode.PONG)
        data = content(min(size, 125) if ping else size)
        frame = Frame(opcode, data, fin=last or ping).serialize(mask=True)
        sent += frame
        expected += b"" if ping else data
        others += frame if ping else b""
    told = Told(sent, part)
    assert (told.data, told.others) == (expected, others)


@pytest.mark.parametrize("part", [1 << 20, 1])
@pytest.mark.parametrize(
    "other",
    [
        Frame(Opcode.TEXT, b"text").serialize(mask=True),
        Frame(Opcode.CLOSE, b"\x03\xe8").serialize(mask=True),
        Frame(Opcode.BINARY, b"no mask").serialize(mask=False),
        Frame(Opcode.BINARY, bytes(LIMIT + 1)).serialize(mask=True),
        b"\xc2\x80maskcompressed",
        b"\x83\x80maskof no known kind",
        b"\x09\x80maska ping in parts",
        b"\x89\xfe\x00\x7emask" + bytes(126),
    ],
    ids=["text", "close", "unmasked", "long", "compressed", "unknown", "split ping", "long ping"],
)
def test_from_other_frames_on_all_is_left_to_the_package(other, part):
    before, after = (Frame(Opcode.BINARY, data).serialize(mask=True) for data in (b"before", b"after"))
    told = Told(before + other + after, part)
    assert (told.data, told.others) == (b"before", other + after)


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536, 3 << 17, 1 << 20])
def test_a_client_reads_what_is_written(size):
    parts = [bytes(part) for part in framed(memoryview(content(size)))]
    assert max(map(len, parts)) <= (1 << 17) + 10
    client = ClientProtocol(parse_uri("ws://127.0.0.1/"), state=State.OPEN)
    client.receive_data(b"".join(parts))
    (frame,) = client.events_received()
    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.BINARY, True, content(size))

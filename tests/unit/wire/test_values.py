"""Sequences and optionals in messages."""

import numpy as np
import pytest

from py_ort.exceptions import ProtocolError
from py_ort.schema.gen.DType import DType
from py_ort.schema.gen.Run import RunT
from py_ort.schema.gen.ValueKind import ValueKind
from py_ort.wire import Assembler, Layout, decode, encode, frames
from py_ort.wire.values import element_type, pack_value, value_of

A, B = np.arange(3, dtype=np.float32), np.ones((2, 2), np.float32)

VALUES = {
    "tensor": ("tensor(float)", A),
    "sequence": ("seq(tensor(float))", [A, B, A]),
    "empty sequence": ("seq(tensor(int64))", []),
    "strings": ("seq(tensor(string))", [np.array(["a", "bc"], object)]),
    "optional": ("optional(tensor(float))", B),
    "empty optional": ("optional(tensor(float))", None),
    "optional sequence": ("optional(seq(tensor(float)))", [A, B]),
    "empty optional sequence": ("optional(seq(tensor(float)))", None),
}


def same(got, want) -> bool:
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    return got is None if want is None else np.array_equal(got, want)


@pytest.mark.parametrize("type_text, value", VALUES.values(), ids=VALUES)
def test_round_trip_through_a_message(type_text, value):
    layout, body = Layout(), RunT()
    body.feeds = [pack_value("x", value, type_text, layout)]
    assembler, whole = Assembler(), None
    for frame in frames(encode(1, body, layout.size), layout.buffers):
        whole = assembler.receive(frame)
    message = decode(*whole)
    (description,) = message.body.feeds
    assert description.name == "x"
    assert same(value_of(description, message.payload), value)


def test_an_empty_sequence_knows_its_type():
    description = pack_value("x", [], "seq(tensor(int64))", Layout())
    assert (description.kind, description.dtype) == (ValueKind.sequence, DType.int64)


@pytest.mark.parametrize(
    "text, kind, inner",
    [
        ("tensor(float)", ValueKind.tensor, "float"),
        ("seq(tensor(float))", ValueKind.sequence, "tensor(float)"),
        ("optional(seq(tensor(float)))", ValueKind.optional, "seq(tensor(float))"),
    ],
)
def test_types(text, kind, inner):
    assert element_type(text) == (kind, inner)


def test_an_optional_holds_one_value_at_most():
    description = pack_value("x", [A, B], "seq(tensor(float))", Layout())
    description.kind = ValueKind.optional
    with pytest.raises(ProtocolError, match="holds 2"):
        value_of(description, memoryview(bytes(64)))

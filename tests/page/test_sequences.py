"""Sequences and optionals in a real page: as feeds, as outputs, and as omitted inputs."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from py_ort.exceptions import InvalidArgument

A, B = np.arange(3, dtype=np.float32), np.ones((2, 2), np.float32)
FLOATS = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
TEXTS = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.STRING, None))
MAYBE = helper.make_optional_type_proto(FLOATS)


def model(nodes, inputs: dict[str, onnx.TypeProto], outputs: dict[str, onnx.TypeProto]) -> bytes:
    values = [[helper.make_value_info(*item) for item in side.items()] for side in (inputs, outputs)]
    graph = helper.make_graph([helper.make_node(*node) for node in nodes], "containers", *values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


@pytest.mark.parametrize("providers", [["wasm"], ["webgpu", "wasm"]], ids="+".join)
@pytest.mark.parametrize("items", [[A, B], [B], []], ids=len)
def test_a_sequence_goes_in_and_a_longer_one_comes_out(new_session, providers, items):
    floats = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    nodes = [("Relu", ["x"], ["y"]), ("SequenceInsert", ["s", "y"], ["longer"])]
    made = model(nodes, {"s": FLOATS, "x": floats}, {"longer": FLOATS, "y": floats})
    session = new_session(made, providers=providers)
    for _ in range(2):  # the second run may replay the first
        longer, y = session.run(None, {"s": items, "x": B - 2})
        assert isinstance(longer, list) and len(longer) == len(items) + 1
        for got, wanted in zip(longer, [*items, y], strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_strings(new_session):
    session = new_session(model([("Identity", ["s"], ["t"])], {"s": TEXTS}, {"t": TEXTS}), providers=["wasm"])
    ((one, two),) = session.run(None, {"s": [np.array(["a", "ß"]), np.array([[""]])]})
    assert one.tolist() == ["a", "ß"] and two.tolist() == [[""]]


def test_an_optional_sequence(new_session):
    flag = helper.make_tensor_type_proto(TensorProto.BOOL, [])
    nodes = [("Identity", ["o"], ["p"]), ("OptionalHasElement", ["o"], ["there"])]
    session = new_session(model(nodes, {"o": MAYBE}, {"p": MAYBE, "there": flag}), providers=["wasm"])
    p, there = session.run(None, {"o": [A, B]})
    assert there and [item.shape for item in p] == [(3,), (2, 2)]
    p, there = session.run(None, {"o": []})
    assert there and p == []
    for feeds in ({"o": None}, {}):
        p, there = session.run(None, feeds)
        assert not there and p is None
    with pytest.raises(InvalidArgument, match=r"'o'.*give a list"):
        session.run(None, {"o": A})


def test_an_optional_tensor_has_a_shape(new_session):
    """Declared as [n, 3]: sessions show it, and feeds must fit."""
    maybe = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 3]))
    floats = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    made = model([("OptionalGetElement", ["o"], ["x"])], {"o": maybe}, {"x": floats})
    session, native = new_session(made, providers=["wasm"]), onnxruntime.InferenceSession(made)
    for ours, theirs in zip(
        session.get_inputs() + session.get_outputs(), native.get_inputs() + native.get_outputs(), strict=True
    ):
        assert (ours.type, ours.shape) == (theirs.type, theirs.shape)
    (x,) = session.run(None, {"o": np.ones((2, 3), np.float32)})
    assert x.shape == (2, 3)
    for wrong in (np.ones((2, 4), np.float32), A):
        with pytest.raises(InvalidArgument, match=r"'o'.*\[n, 3\]"):
            session.run(None, {"o": wrong})

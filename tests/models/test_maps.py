"""Inputs and outputs that are maps: dicts here, tensors in the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from same_values import assert_same

from py_ort.exceptions import InvalidArgument, NotImplemented, RuntimeException

ML = "ai.onnx.ml"
STRING, INT64, FLOAT = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT


def map_type(key: int, value: int) -> onnx.TypeProto:
    """map(key, tensor(value))."""
    kind = onnx.TypeProto()
    kind.map_type.key_type = key
    kind.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(value, []))
    return kind


def model(nodes: list[onnx.NodeProto], x: Any, y: Any) -> bytes:
    """A model from `x` to `y`, of these types."""
    values = [onnx.ValueInfoProto(name=name, type=kind) for name, kind in (("x", x), ("y", y))]
    graph = helper.make_graph(nodes, "maps", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 1)], ir_version=8).SerializeToString()


def zip_map(**labels: Any) -> bytes:
    """Rows of numbers to maps."""
    node = helper.make_node("ZipMap", ["x"], ["y"], domain=ML, **labels)
    key = STRING if "classlabels_strings" in labels else INT64
    maps = onnx.TypeProto()
    maps.sequence_type.elem_type.CopyFrom(map_type(key, FLOAT))
    return model([node], helper.make_tensor_type_proto(FLOAT, ["n", None]), maps)


def from_map(op: str, key: int, value: int, result: int, **attributes: Any) -> bytes:
    """A map to a row."""
    node = helper.make_node(op, ["x"], ["y"], domain=ML, **attributes)
    return model([node], map_type(key, value), helper.make_tensor_type_proto(result, [1, None]))


ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
CASES = {
    "zip-integers": (zip_map(classlabels_int64s=[3, 1, 2]), ROWS),
    "zip-strings": (zip_map(classlabels_strings=["a", "b", "c"]), ROWS),
    "zip-no-rows": (zip_map(classlabels_strings=["a", "b", "c"]), ROWS[:0]),
    "vectorizer": (
        from_map("DictVectorizer", STRING, FLOAT, FLOAT, string_vocabulary=["a", "b"]),
        {"b": 2.0, "q": 5.0},
    ),
    "cast-dense": (from_map("CastMap", INT64, FLOAT, FLOAT), {5: 2.0, 1: 1.5}),
    "cast-integers": (from_map("CastMap", INT64, FLOAT, INT64, cast_to="TO_INT64"), {5: 2.0, 1: 1.0}),
    "cast-sparse": (from_map("CastMap", INT64, FLOAT, FLOAT, map_form="SPARSE", max_map=4), {3: 2.5, 1: 7.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_onnxruntime(new_session, name: str):
    import onnxruntime

    data, feed = CASES[name]
    native = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    session = new_session(data, providers=["wasm"])
    assert [arg.type for arg in (*session.get_inputs(), *session.get_outputs())] == [
        arg.type for arg in (*native.get_inputs(), *native.get_outputs())
    ]
    assert_same(session.run(None, {"x": feed}), native.run(None, {"x": feed}))


@pytest.mark.parametrize("feed", [np.zeros(3), None, {1: 2.0}, {"a": "text"}], ids=["array", "none", "keys", "values"])
def test_a_wrong_map_is_refused(new_session, feed: Any):
    session = new_session(CASES["vectorizer"][0], providers=["wasm"])
    with pytest.raises(InvalidArgument, match=r"'x'.*map\(string,tensor\(float\)\)"):
        session.run(None, {"x": feed})
    assert session.run(None, {"x": {"a": 1.0}})[0].tolist() == [[1, 0]]


def test_columns_must_be_as_many_as_labels(new_session):
    session = new_session(zip_map(classlabels_int64s=[3, 1]), providers=["wasm"])
    with pytest.raises(RuntimeException, match="2 class labels, and got 3 columns"):
        session.run(None, {"x": ROWS})


def test_maps_inside_a_model_are_refused(new_session):
    nodes = [
        helper.make_node("ZipMap", ["x"], ["maps"], domain=ML, classlabels_int64s=[1, 2, 3], name="zip"),
        helper.make_node("SequenceLength", ["maps"], ["y"]),
    ]
    row = helper.make_tensor_type_proto(FLOAT, ["n", 3])
    with pytest.raises(NotImplemented, match=r"zip \(ZipMap\).*border"):
        new_session(model(nodes, row, helper.make_tensor_type_proto(INT64, [])), providers=["wasm"])

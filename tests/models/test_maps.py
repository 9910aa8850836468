"""Inputs and outputs that are maps: dicts here, tensors in the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from native import native_session
from onnx import TensorProto, helper
from same_values import assert_same

from py_ort.compiler.load import load_model
from py_ort.exceptions import InvalidArgument, InvalidGraph, NotImplemented, RuntimeException

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

    data, feed = CASES[name]
    native = native_session(data)
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


MAPS = onnx.TypeProto()
MAPS.sequence_type.elem_type.CopyFrom(map_type(INT64, FLOAT))
FLOATS, TRUTH = helper.make_tensor_type_proto(FLOAT, [None, None]), helper.make_tensor_type_proto(TensorProto.BOOL, [])


def vectorizer(output: str, *keys: int, source: str = "x") -> onnx.NodeProto:
    return helper.make_node("DictVectorizer", [source], [output], domain=ML, int64_vocabulary=keys)


def cast(output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("CastMap", ["x"], [output], domain=ML, **attributes)


def zipped(output: str, source: str = "t") -> onnx.NodeProto:
    return helper.make_node("ZipMap", [source], [output], domain=ML, classlabels_int64s=[7, 5])


def several(nodes: list[onnx.NodeProto], opset: int = 17, functions: Any = (), **types: onnx.TypeProto) -> bytes:
    """A model whose inputs and outputs have these types; names of outputs begin with y."""
    values = [onnx.ValueInfoProto(name=name, type=kind) for name, kind in types.items()]
    outputs = [value for value in values if value.name.startswith("y")]
    graph = helper.make_graph(nodes, "maps", [value for value in values if value not in outputs], outputs)
    opsets = [helper.make_opsetid(*each) for each in (("", opset), (ML, 1), ("own", 1))]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8).SerializeToString()


def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [onnx.ValueInfoProto(name=nodes[-1].output[0], type=FLOATS)])


def function(*nodes: onnx.NodeProto) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid(ML, 1), helper.make_opsetid("own", 1), helper.make_opsetid("", 17)]
    name = f"Of{nodes[0].op_type}"
    return helper.make_function("own", name, nodes[0].input[:1], nodes[-1].output[:1], nodes, opsets)


def call(name: str, source: str) -> onnx.NodeProto:
    return helper.make_node(name, [source], ["y"], domain="own")


FED = map_type(INT64, FLOAT)
X, T = {"x": {5: 2.0, 1: 1.5, 9: 4.0}}, {"t": ROWS[:, :2]}
THREE = [vectorizer("ya", 1, 2), cast("yb"), cast("yc", map_form="SPARSE", max_map=7, cast_to="TO_INT64")]
LONGS = helper.make_tensor_type_proto(INT64, [1, None])
THEN = branch(vectorizer("a", 5, 1))
ELSE = branch(cast("b", map_form="SPARSE", max_map=2), helper.make_node("Neg", ["b"], ["c"]))
IF = helper.make_node("If", ["k"], ["y"], then_branch=THEN, else_branch=ELSE)
NEG = helper.make_node("Neg", ["t"], ["y"])
VECTOR, ZIP = function(vectorizer("b", 9, 5, source="a")), function(zipped("b", "a"))
NESTED = function(helper.make_node("Neg", ["a"], ["n"]), helper.make_node("OfZipMap", ["n"], ["b"], domain="own"))
INSIDE = {
    "three readers": (several(THREE, x=FED, ya=FLOATS, yb=FLOATS, yc=LONGS), X),
    "three readers of old": (several(THREE, 9, x=FED, ya=FLOATS, yb=FLOATS, yc=LONGS), X),
    "a branch": (several([IF], x=FED, k=TRUTH, y=FLOATS), {**X, "k": np.array(True)}),
    "the other branch": (several([IF], x=FED, k=TRUTH, y=FLOATS), {**X, "k": np.array(False)}),
    "a function that reads": (several([call("OfDictVectorizer", "x")], 17, [VECTOR], x=FED, y=FLOATS), X),
    "a function that makes": (several([call("OfZipMap", "t")], 17, [ZIP], t=FLOATS, y=MAPS), T),
    "functions in each other": (several([call("OfNeg", "t")], 17, [ZIP, NESTED], t=FLOATS, y=MAPS), T),
    "nobody reads": (several([NEG], x=FED, t=FLOATS, y=FLOATS), {**X, **T}),
    "nobody wants": (several([NEG, zipped("z")], t=FLOATS, y=FLOATS), T),
    "two of one": (several([zipped("ya"), zipped("yb")], t=FLOATS, ya=MAPS, yb=MAPS), T),
}


@pytest.mark.parametrize("name", INSIDE)
def test_maps_anywhere_in_a_model(new_session, name: str):

    data, feeds = INSIDE[name]
    native = native_session(data)
    session = new_session(data, providers=["wasm"])
    assert [arg.type for arg in session.get_inputs()] == [arg.type for arg in native.get_inputs()]
    for got, wanted in zip(session.run(None, feeds), native.run(None, feeds), strict=True):
        assert_same([got], [wanted])


LENGTH = helper.make_node("SequenceLength", ["z"], ["y"])
MAP_IF = helper.make_node("If", ["k"], ["y"], then_branch=branch(zipped("a")), else_branch=branch(zipped("b")))
CALLS_ITSELF = function(zipped("z", "a"), helper.make_node("OfZipMap", ["a"], ["b"], domain="own"))
REFUSED = {
    "read by what takes sequences": (several([zipped("z"), LENGTH], t=FLOATS, y=LONGS), r"z \(ZipMap\).*border"),
    "out of a branch": (several([MAP_IF], t=FLOATS, k=TRUTH, y=MAPS), r"[ab] \(ZipMap\).*branch or a loop"),
    "read by another operator": (
        several([helper.make_node("Identity", ["x"], ["z"]), vectorizer("y", 1)], x=FED, y=FLOATS),
        "'x' is made of maps",
    ),
    "no map": (several([vectorizer("y", 1)], x=FLOATS, y=FLOATS), r"y \(DictVectorizer\).*no map that is fed"),
    "a circle": (several([call("OfZipMap", "t")], 17, [CALLS_ITSELF], t=FLOATS, y=MAPS), "OfZipMap works on maps, and"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_operator_can_do_with_maps(name: str):
    data, text = REFUSED[name]
    with pytest.raises((NotImplemented, InvalidGraph), match=text):
        load_model(data)

"""Forms of a model that native onnxruntime reads are read; forms that it refuses are refused with words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from graphs import check_equal, compiled, operators, parse
from onnx import TensorProto, helper, numpy_helper
from standard_form import run_native, standard_form

from py_ort.compiler import compile_model
from py_ort.compiler.load import load_model
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidGraph, NotImplemented, OutOfMemory

F = np.float32
X = {"x": np.arange(12, dtype=F).reshape(3, 4)}
FOREIGN = b"\xff\xe9t\xe9"  # Latin-1
ADD = "g (float[3,4] x) => (float[3,4] y) { y = Add(x, w) }"


def sparse(values: np.ndarray, indices: np.ndarray, dims: list[int]) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(numpy_helper.from_array(values, "w"), numpy_helper.from_array(indices), dims)


def with_sparse(tensor: onnx.SparseTensorProto) -> onnx.ModelProto:
    model = parse(ADD)
    model.graph.sparse_initializer.append(tensor)
    return model


PLACES = {
    "flat": np.array([0, 5, 11]),
    "rows": np.array([[0, 0], [1, 1], [2, 3]]),
    "unsorted": np.array([11, 5, 0]),
    "one twice": np.array([5, 5, 0]),
    "int32": np.array([0, 5, 11], np.int32),
    "int16": np.array([0, 5, 11], np.int16),
    "int8": np.array([0, 5, 11], np.int8),
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_sparse_initializers_are_made_dense(places: np.ndarray) -> None:
    check_equal(with_sparse(sparse(np.array([1, 2, 3], F), places, [3, 4])), feeds=X)


def test_a_sparse_initializer_without_values_is_zeros() -> None:
    check_equal(with_sparse(sparse(np.zeros(0, F), np.zeros(0, np.int64), [3, 4])), feeds=X)


def test_a_sparse_initializer_counts_more_than_a_dense_one_and_may_be_an_input() -> None:
    model = with_sparse(sparse(np.array([1, 2], F), np.array([0, 7]), [3, 4]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((3, 4), F), "w"))
    check_equal(model, feeds=X)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3, 4]))
    result = check_equal(model, feeds=X)
    assert [item.name for item in result.overridable] == ["w"]


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_sparse_values_of_constants_are_made_dense(opset: int) -> None:
    model = parse(ADD, opset=opset)
    for places in (PLACES["flat"], PLACES["rows"]):
        constant = helper.make_node("Constant", [], ["w"], sparse_value=sparse(np.array([1, 2, 3], F), places, [3, 4]))
        del model.graph.node[:-1]
        model.graph.node.insert(0, constant)
        check_equal(model, feeds=X)


@pytest.mark.parametrize(
    ("values", "places", "dims", "error", "words"),
    [
        (np.ones(1, F), np.array([12]), [3, 4], InvalidGraph, r"an index \[12\]"),
        (np.ones(1, F), np.array([-1]), [3, 4], InvalidGraph, r"an index \[-1\]"),
        (np.ones(1, F), np.array([[2, 4]]), [3, 4], InvalidGraph, r"an index \[2, 4\]"),
        (np.ones(2, F), np.array([1]), [3, 4], InvalidGraph, r"values of shape \[2\] and indices of shape \[1\]"),
        (np.ones((1, 2), F), np.array([1]), [3, 4], InvalidGraph, r"values of shape \[1, 2\]"),
        (np.ones(1, F), np.array([1], np.uint32), [3, 4], InvalidGraph, "no signed integers"),
        (np.ones(1, F), np.array([0]), [-3, 4], InvalidGraph, r"the shape \[-3, 4\]"),
        (np.ones(1, F), np.array([0]), [2**31, 2**31], OutOfMemory, "too large"),
        (np.array(["a"], object), np.array([0]), [3], NotImplemented, "strings"),
    ],
)
def test_sparse_tensors_that_are_wrong(
    values: np.ndarray, places: np.ndarray, dims: list[int], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        compiled(with_sparse(sparse(values, places, dims)))


@pytest.mark.parametrize("imports", [[("ai.onnx", 13)], [("", 11), ("ai.onnx", 13)], [("ai.onnx", 13), ("", 11)]])
def test_the_standard_by_its_full_name(imports: list[tuple[str, int]]) -> None:
    model = parse("g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }")
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*item) for item in imports)
    check_equal(model, feeds={"x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(F)})


def test_the_standard_by_its_full_name_in_a_function() -> None:
    body = helper.make_function(
        "own", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("ai.onnx", 17)]
    )
    model = parse("g (float[3,4] x) => (float[3,4] y) { y = Neg(x) }")
    model.graph.node[0].CopyFrom(helper.make_node("F", ["x"], ["y"], domain="own"))
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.append(body)
    assert operators(compiled(model)) == {"Neg": 1}  # native onnxruntime refuses this


def constant(value: float) -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.full(4, value, F)))


def test_of_constants_with_one_name_the_last_one_counts() -> None:
    model = parse("g (float[3,4] x) => (float[3,4] y) { a = Add(x, c)  y = Mul(a, c) }")
    model.graph.node.insert(0, constant(2))
    model.graph.node.insert(2, constant(3))
    check_equal(model, feeds=X)


def test_a_constant_counts_more_than_an_initializer_and_gives_an_input_its_default() -> None:
    model = parse("g (float[3,4] x) => (float[3,4] y) { y = Add(x, c) }", {"c": np.zeros(4, F)})
    model.graph.node.insert(0, constant(2))
    check_equal(model, feeds=X)
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [4]))
    assert [item.name for item in check_equal(model, feeds=X).overridable] == ["c"]


def test_any_other_name_made_twice_is_an_error() -> None:
    with pytest.raises(InvalidGraph, match="redeclared"):
        compiled(parse("g (float[3,4] x) => (float[3,4] y) { y = Relu(x)  y = Neg(x) }"))


def foreign(model: onnx.ModelProto, word: bytes) -> bytes:
    data = model.SerializeToString()
    assert word in data and len(word) == len(FOREIGN)
    return data.replace(word, FOREIGN)


NAMED = """<ir_version: 8, opset_import: ["" : 17, "DDDD" : 1]>
GGGG (float[SSSS,4] x) => (float[SSSS,4] y) <float[4] WWWW> { VVVV = Add(x, WWWW)  y = Neg(VVVV) }"""


@pytest.mark.parametrize("word", [b"GGGG", b"SSSS", b"WWWW", b"VVVV", b"NNNN", b"DDDD", b"TTTT"])
def test_names_in_other_encodings(word: bytes) -> None:
    model = parse(NAMED, {"WWWW": np.ones(4, F)})
    model.graph.node[0].name = "NNNN"
    model.doc_string = "TTTT"
    data = foreign(model, word)
    result = compile_model(data, providers=["wasm"])
    (found,) = run_native(standard_form(result), X)
    (wanted,) = run_native(data, X)
    np.testing.assert_array_equal(found, wanted)


def test_inputs_and_outputs_in_other_encodings_have_names() -> None:
    model = parse("g (float[3,4] XXXX) => (float[3,4] y) { y = Neg(XXXX) }")
    result = compile_model(foreign(model, b"XXXX"), providers=["wasm"])
    assert [item.name for item in result.inputs] == [r"\xff\xe9t\xe9"]


def test_names_that_differ_stay_different() -> None:
    model = parse("g (float[3,4] x) => (float[3,4] y) { AAAA = Neg(x)  BBBB = Abs(x)  y = Sub(AAAA, BBBB) }")
    data = model.SerializeToString().replace(b"AAAA", b"\xe9\xe9\xe9\xe9").replace(b"BBBB", b"\xe8\xe8\xe8\xe8")
    (found,) = run_native(standard_form(compile_model(data, providers=["wasm"])), X)
    np.testing.assert_array_equal(found, run_native(data, X)[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda node: setattr(node, "op_type", "WORD"),
        lambda node: setattr(node, "domain", "WORD"),
        lambda node: node.attribute.append(helper.make_attribute("WORD", 1)),
    ],
    ids=["operator", "domain", "attribute"],
)
def test_what_cannot_be_looked_up_is_an_error_that_can_be_read(change: Callable[[onnx.NodeProto], None]) -> None:
    model = parse("g (float[3,4] x) => (float[3,4] y) { y = Neg(x) }")
    change(model.graph.node[0])
    with pytest.raises((InvalidGraph, NotImplemented)) as caught:
        compile_model(foreign(model, b"WORD"), providers=["wasm"])
    assert str(caught.value)


def test_foreign_labels_stay_apart() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
    g (int64[2] x) => (string[2] y) {
        y = ai.onnx.ml.LabelEncoder<keys_int64s=[0,1], values_strings=["AAAA","BBBB"]>(x)
    }"""
    data = parse(text).SerializeToString().replace(b"AAAA", b"\xe9\xe9\xe9\xe9").replace(b"BBBB", b"\xe8\xe8\xe8\xe8")
    (node,) = load_model(data).model.graph
    assert node.attributes["values_strings"].value == (r"\xe9\xe9\xe9\xe9", r"\xe8\xe8\xe8\xe8")


def test_a_model_that_imports_other_domains_only_has_the_newest_opset() -> None:
    model = parse("g (float[3,4] x) => (float[3,4] y) { y = Relu(x) }")
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    check_equal(model, feeds=X)


def test_a_dimension_whose_name_is_empty_has_none() -> None:
    model = parse("g (float[3,4] x) => (float[3,4] y) { y = Relu(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = ""
    assert NodeArg.of(load_model(model.SerializeToString()).model.graph.inputs[0]).shape == [None, 4]


def test_an_output_that_is_an_input_has_its_type_unsaid() -> None:
    model = parse("g (float[3,4] x) => (float[3,4] y) { y = Neg(x) }")
    model.graph.output.append(onnx.ValueInfoProto(name="x"))
    result = check_equal(model, feeds=X)
    assert [arg.type for arg in (*result.inputs, *result.outputs)] == ["tensor(float)"] * 3

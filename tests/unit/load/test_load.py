"""Reading models, and errors for files that are not models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from graphs import check_equal, compiled, parse
from native import native_session

from py_ort.compiler import compile_model
from py_ort.compiler.load import load_model
from py_ort.exceptions import InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented

RELU = "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFile, match="no model at"):
        load_model(tmp_path / "none.onnx")


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"", "empty"),
        (b"hello world, this is no model", "not an ONNX model$"),
        (bytes(range(256)), "not an ONNX model$"),
        (b"\xff" * 64, "not an ONNX model$"),
        (b"PK\x03\x04" + bytes(60), "zip archive"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (bytes(4) + b"ORTM" + bytes(20), "a damaged file of onnxruntime's format"),
    ],
)
def test_bytes_that_are_no_model(data: bytes, hint: str) -> None:
    with pytest.raises(InvalidProtobuf, match=hint):
        load_model(data)


def test_a_cut_file_is_truncated(tmp_path: Path) -> None:
    model = parse("g (float[64] x) => (float[64] y) { y = Add(x, c) }", {"c": np.ones(64, np.float32)})
    data = model.SerializeToString()
    graph = data.index(model.graph.SerializeToString())
    path = tmp_path / "cut.onnx"
    for size in (graph - 1, graph, graph + 1, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(InvalidProtobuf, match=rf"is truncated: it has {size} bytes of at least \d+"):
            compile_model(path)


def test_an_unknown_operator_is_named_with_its_node() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].op_type, model.graph.node[0].name = "Relux", "the_node"
    with pytest.raises(NotImplemented, match="Relux, for which there is no kernel") as caught:
        compiled(model)
    assert (caught.value.node, caught.value.op_type, caught.value.domain) == ("the_node", "Relux", "")


def test_an_unknown_domain_is_named() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].domain = "com.example"
    with pytest.raises(InvalidGraph, match="imports no opset of that domain"):
        compiled(model)


@pytest.mark.parametrize("domain", ["com.microsoft", "my.own"])
def test_an_operator_of_others_without_a_kernel(domain: str) -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    model.graph.node[0].domain, model.graph.node[0].op_type = domain, "Frobnicate"
    if domain == "my.own":
        model.opset_import.append(onnx.helper.make_opsetid(domain, 1))
    else:  # onnxruntime does not require this import
        del model.opset_import[1:]
    with pytest.raises(NotImplemented, match=f"{domain}::Frobnicate, for which there is no kernel") as caught:
        compiled(model)
    with pytest.raises(Exception, match="is not a registered function/op") as native:
        native_session(model)
    assert str(native.value).rpartition("Fatal error: ")[2] in str(caught.value)
    assert ("register_kernel" in str(caught.value)) == (domain == "my.own")


def test_experiments_ended_with_opset_10() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Scale<scale=2.0>(x) }", opset=9)
    check_equal(model)
    model.opset_import[0].version = 10
    with pytest.raises(InvalidGraph, match=r"ai\.onnx::Scale, which opset 10 does not know"):
        compiled(model)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("Crop<border=[3,0,3,0]>(x)", "do not go with an input of shape"),
        ("Crop<border=[0,0,0,0], scale=[5,1]>(x)", "do not go with an input of shape"),
        ("Crop<border=[1,1]>(x)", "say nothing"),
        ("Crop(x)", "lacks its attribute 'border'"),
        ("ImageScaler<bias=[1.0]>(x)", "a bias of 1 channels does not go with an input of shape"),
        ("ImageScaler(x)", "lacks its attribute 'bias'"),
        ("ScaledTanh<alpha=1.0>(x)", "lacks its attribute 'beta'"),
    ],
)
def test_experiments_that_are_wrong(call: str, words: str) -> None:
    with pytest.raises(InvalidGraph, match=words):
        compiled(parse(f"g (float[1,3,4,4] x) => (float[a,b,c,d] y) {{ y = {call} }}", opset=9))


def test_larger_inputs_than_there_can_be() -> None:
    model = parse("g (float[4294967296,3] x) => (float[a,b] y) { y = Transpose(x) }")
    assert compiled(model).outputs[0].shape == [3, 2**32]
    with pytest.raises(InvalidGraph, match=r"would have the shape \[4294967296\]"):
        compiled(parse("g (float x) => (float[a] y) { n = Constant<value_ints=[4294967296]>() y = Expand(x, n) }"))


def test_an_operator_that_came_later() -> None:
    model = parse("g (float[2,4] x) => (float[2,4] y) { y = Gelu(x) }", opset=20)
    model.opset_import[0].version = 11
    with pytest.raises(InvalidGraph, match="came with opset 20"):
        compiled(model)


@pytest.mark.parametrize(("field", "words"), [("opset", "this py_ort knows up to 28"), ("ir", "IR version")])
def test_models_of_the_future(field: str, words: str) -> None:
    model = parse(RELU)
    if field == "opset":
        model.opset_import[0].version = 999
    else:
        model.ir_version = 999
    with pytest.raises(NotImplemented, match=words):
        compiled(model)


@pytest.mark.parametrize(
    ("call", "ignored"),
    [
        ("LayerNormalization<epsion=0.1>(x, s)", True),
        ("SimplifiedLayerNormalization<epsion=0.1>(x, s)", True),
        ("RMSNormalization<epsion=0.1>(x, s)", False),
        ("com.microsoft.FusedMatMul<foo=1>(x, s)", False),
        ("com.microsoft.SkipLayerNormalization<foo=1>(x, x, s)", False),
    ],
)
def test_unknown_attributes_are_ignored_where_native_onnxruntime_does(call: str, ignored: bool) -> None:
    model = parse(f"g (float[2,2,4] x, float[4] s) => (float[a,b,c] y) {{ y = {call} }}", opset=23)
    if ignored:
        compiled(model)
        return
    with pytest.raises(InvalidGraph, match="which the operator does not know"):
        compiled(model)


_BLOCKS, _JOINED = "com.microsoft.MatMulNBits", "g (uint8[2] x, float s, uint8 z) => (uint8[n] y)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("g (float[2] x) => (float[2] y) { y = Relu(z) }", "reads 'z'"),
        ("g (float[2] x) => (float[2] z) { y = Relu(x) }", "gives 'z' out"),
        ("g (float[2] x) => (float[2] y) { y = Relu(x, x) }", "has 2 inputs, not 1"),
        ('g (float[2] x) => (float[2] y) { y = Add(x, "") }', "lacks its input 'B'"),
        ("g (float[2] x) => (float[2] y) { y = Relu<alpha=1.0>(x) }", "attribute 'alpha'"),
        ("g (float[2] x) => (float[2] y) { y = Elu<alpha=1>(x) }", "is of type INT, not FLOAT"),
        ("g (float[2] x) => (float[2] y) { y = Cast(x) }", "lacks its attribute 'to'"),
        (f"g (float[2,32] x) => (float[2,n] y) {{ y = {_BLOCKS}<K=32, block_size=32>(x, x, x) }}", "attribute 'N'"),
        (f"g (float[2,32] x) => (float[2,n] y) {{ y = {_BLOCKS}<K=32.0, N=4, block_size=32>(x, x, x) }}", "not INT"),
        (f"g (float[2,32] x) => (float[2,n] y) {{ y = {_BLOCKS}<K=32, N=4, block_size=32>(x, x) }}", "has 2 inputs"),
        ("g (float[2] x) => (float[2] y) { y = com.microsoft.BiasGelu(x, x, x) }", "has 3 inputs, not 2"),
        ("g (float[2] x) => (float[2] y) { y = SimplifiedLayerNormalization(x) }", "has 1 inputs, not 2"),
        (
            "g (float[2] x) => (float[2] y) { y, z = com.microsoft.CausalConvWithState(x, x) }",
            "ranks of its inputs do not fit",
        ),
        *(
            (
                f"{_JOINED} {{ y = com.microsoft.QLinearConcat<axis=0>({given}) }}",
                told,
            )
            for given, told in {
                "s, z, x, s, z, x": "zero point of each tensor",
                "s, z, x, s": "zero point of each tensor",
                's, z, x, "", z': "leaves out one of its inputs",
            }.items()
        ),
        (
            "g (float[1,2,4] x, float[4,12] w) => (float[a,b,c] y) "
            "{ y = com.microsoft.Attention<num_heads=2, qkv_hidden_sizes=[4]>(x, w) }",
            "not three numbers",
        ),
    ],
)
def test_broken_graphs(text: str, words: str) -> None:
    with pytest.raises(InvalidGraph, match=words):
        compiled(parse(text))


def test_external_data(tmp_path: Path) -> None:
    model = parse("g (float[64] x) => (float[64] y) { y = Add(x, c) }", {"c": np.arange(64, dtype=np.float32)})
    path = tmp_path / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    loaded = load_model(path).model
    np.testing.assert_array_equal(loaded.graph.initializers["c"].const_value.numpy(), np.arange(64, dtype=np.float32))
    (tmp_path / "weights.bin").write_bytes(bytes(10))
    with pytest.raises(InvalidGraph, match="reaches to byte 256"):
        load_model(path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(NoSuchFile, match=r"weights\.bin"):
        load_model(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "g (float[2] x, int64[2] k) => (float[2] y) { y = Add(x, k) }",
            "must have one type, and have tensor.float. and tensor.int64.",
        ),
        (
            "g (int64[2] x) => (int64[2] y) { y = Sqrt(x) }",
            "has the type tensor.int64., which the operator does not take",
        ),
        ("g (float[2,3] x, float[4,5] k) => (float[2,5] y) { y = MatMul(x, k) }", "Incompatible dimensions"),
        ("g (float[2,3] x, float[2,4] k) => (float[2,3] y) { y = Concat<axis=0>(x, k) }", "dimension"),
        (
            "g (float[1,3,8,8] x, float[4,5,3,3] k) => (float[a,b,c,d] y) { y = Conv(x, k) }",
            "not that of W.M, C / group",
        ),
        (
            "g (float[1,4,8,8] x, float[4,1,3,3] k) => (float[a,b,c,d] y) { y = Conv<group=3>(x, k) }",
            "not that of W.M, C / group",
        ),
        (
            "g (float[1,3,8,8] x, float[4,1,3,3] k) => (float[a,b,c,d] y) { y = Conv<group=3>(x, k) }",
            "M % group == 0 does not hold",
        ),
        (
            "g (float[1,3,8,8] x, float[4,3,1,1] k, float[5] b) => (float[i,j,l,m] y) { y = Conv(x, k, b) }",
            "not that of B.M., where",
        ),
        (
            "g (float[1,3,8,8] x, float[4,3,1,1] k) => (float[a,b,c,d] y) { y = ConvTranspose(x, k) }",
            "not that of W.C, M",
        ),
        (
            "g (float[1,3,4,4] x) => (float[a,b,c,d] y) { y = MaxPool<kernel_shape=[9,9]>(x) }",
            r"the shape \[1, 3, -4, -4\]",
        ),
        (
            "g (float[2,8] x, float[7] s) => (float[2,8] y) { y = LayerNormalization(x, s) }",
            r"broadcasts\(Scale, X\) does not hold\n.*\[.7.\]",
        ),
        *(
            (
                f"g (float[3,4] x, float[2,2] u) => (float[a,b] y) <int64[{shape}] i = {{{indices}}}> {{ y = {call} }}",
                f"index {wrong} is outside of axis {axis}",
            )
            for call, shape, indices, wrong, axis in (
                ("Gather<axis=1>(x, i)", "2", "0, 4", 4, 1),
                ("Gather(x, i)", "2", "0, -4", -4, 0),
                ("GatherElements(x, i)", "1,2", "0, 3", 3, 0),
                ("GatherND(x, i)", "2,2", "0, 3, 2, 4", 4, 1),
                ("ScatterElements<axis=1>(x, i, u)", "2,2", "0, 1, 2, -5", -5, 1),
            )
        ),
    ],
)
def test_inputs_that_do_not_fit(text: str, words: str) -> None:
    model = parse(text)
    model.graph.node[0].name = "culprit"
    with pytest.raises(InvalidGraph, match=words) as caught:
        compiled(model)
    assert caught.value.node == "culprit"


def test_metadata_is_kept() -> None:
    model = parse(RELU)
    model.producer_name, model.domain, model.model_version, model.doc_string = "maker", "org", 7, "words"
    model.metadata_props.add(key="labels", value="a,b")
    found = compiled(model).metadata
    assert (found.producer_name, found.domain, found.version, found.description, found.graph_name) == (
        "maker",
        "org",
        7,
        "words",
        "g",
    )
    assert found.custom_metadata_map == {"labels": "a,b"}


def test_weights_listed_as_inputs_are_none() -> None:
    model = parse("g (float[2,3] x, float[3] c) => (float[2,3] y) { y = Add(x, c) }", {"c": np.ones(3, np.float32)})
    model.ir_version = 3
    result = compiled(model)
    assert [arg.name for arg in result.inputs] == ["x"]
    check_equal(model, result, feeds={"x": np.ones((2, 3), np.float32)})


def test_inputs_and_outputs_are_described_as_in_onnxruntime() -> None:
    model = parse("g (float16[n,3] x, int64 k, seq(float[2]) s) => (float16[n,3] y) { y = Relu(x) }")
    result = compiled(model, providers=["wasm"])
    assert [(a.name, a.type, a.shape) for a in result.inputs] == [
        ("x", "tensor(float16)", ["n", 3]),
        ("k", "tensor(int64)", []),
        ("s", "seq(tensor(float))", []),
    ]
    assert [(a.name, a.type, a.shape) for a in result.outputs] == [("y", "tensor(float16)", ["n", 3])]

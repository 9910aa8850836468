"""Files of onnxruntime's own format (.ort), written by native onnxruntime: the original model, or a typed error."""

from __future__ import annotations

import random
from pathlib import Path

import flatbuffers
import numpy as np
import onnx
import onnxruntime
import pytest
from graphs import check_equal, parse, random_feeds
from onnx import helper
from plans_in_node import run_plans
from standard_form import run_native

from py_ort.compiler import compile_model
from py_ort.compiler.load import load_model, read_proto
from py_ort.compiler.saved.target import SavedModel
from py_ort.exceptions import InvalidProtobuf, NotImplemented, PyOrtError

RNG = np.random.default_rng(3)
WEIGHTS = {"w": RNG.standard_normal((4, 3)).astype(np.float32), "b": np.float32([1, 2, 3])}
BRANCHES = """g (float[n,4] x) => (float[n,3] y) {
    m = MatMul(x, w) s = ReduceSum<keepdims = 0>(m) z = Constant<value = float {0.0}>() c = Greater(s, z)
    y = If(c) <
        then_branch = t () => (float[n,3] a) { r = Relu(m) a = Add(r, b) },
        else_branch = e () => (float[n,3] a) { a = Neg(m) }
    >
}"""
GRAPHS = {
    "a fused product": "g (float[n,4] x) => (float[n,3] y) { m = MatMul(x, w) a = Add(m, b) y = Relu(a) }",
    "branches": BRANCHES,
    "a loop": """g (float[2,3] x) => (float[2,3] y) {
        n = Constant<value = int64 {3}>() k = Constant<value = bool {1}>()
        y = Loop(n, k, x) <
            body = l (int64 i, bool c, float[2,3] v) => (bool d, float[2,3] t) { t = Add(v, b) d = Identity(c) }
        >
    }""",
    "a sequence": """g (float[2,3] x) => (float[k,3] y) {
        s = SplitToSequence<axis = 0>(x) y = ConcatFromSequence<axis = 0>(s)
    }""",
    "attributes of many kinds": """g (float[1,1,4,4] x) => (float[1,1,8,8] y) {
        p = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x) l = LeakyRelu<alpha = 0.3>(p)
        k = Constant<value = float[4] {1.0, 1.0, 2.0, 2.0}>() y = Resize<mode = "linear">(l, , k)
    }""",
}
BASIC, EXTENDED = (
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
)


def ort_file(model: onnx.ModelProto, path: Path, level: onnxruntime.GraphOptimizationLevel = EXTENDED) -> bytes:
    """Let native onnxruntime write a model in its own format."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return path.read_bytes()


@pytest.fixture
def branches(tmp_path: Path) -> bytes:
    return ort_file(parse(BRANCHES, WEIGHTS), tmp_path / "m.ort")


def of_version(data: bytes, version: bytes) -> bytes:
    """Write another version into a file."""
    assert data.count(b"\1\0\0\0" + b"6\0") == 1
    return data.replace(b"\1\0\0\0" + b"6\0", b"\1\0\0\0" + version + b"\0")


@pytest.mark.parametrize("level", [BASIC, EXTENDED], ids=["basic", "extended"])
@pytest.mark.parametrize("text", GRAPHS.values(), ids=list(GRAPHS))
def test_a_file_is_the_model_that_it_was(tmp_path: Path, text: str, level: onnxruntime.GraphOptimizationLevel) -> None:
    model = parse(text, {name: WEIGHTS[name] for name in WEIGHTS if name in text})
    made = load_model(ort_file(model, tmp_path / "m.ort", level))
    read = read_proto(tmp_path / "m.ort")
    assert [value.name for value in made.model.graph.inputs] == ["x"]
    feeds = random_feeds(model)
    for got, wanted in zip(run_native(read, feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    check_equal(read, feeds=feeds)


def test_dtypes_names_and_metadata(tmp_path: Path) -> None:
    contents = {
        "f16": np.float16([1.5, -2]),
        "i8": np.int8([-3]),
        "u64": np.uint64([1 << 63]),
        "truth": np.bool_([True, False]),
        "none": np.zeros((0, 2), np.float32),
        "scalar": np.float64(2.5),
        "texts": np.array([["a", "ü"]], object),
    }
    outputs = [
        helper.make_tensor_value_info(f"{name}_out", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in contents.items()
    ]
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"], name=f"node of {name}") for name in contents]
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in contents.items()]
    graph = helper.make_graph(nodes, "named", [], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="us")
    helper.set_model_props(model, {"key": "value"})
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    made = load_model(ort_file(model, tmp_path / "m.ort", level))
    for name, value in contents.items():
        got = made.model.graph.initializers[name].const_value
        assert got is not None
        found = [text.decode() for text in got.numpy().reshape(-1)] if name == "texts" else got.numpy()
        np.testing.assert_array_equal(np.reshape(found, np.shape(value)), value)
    assert [node.name for node in made.model.graph] == [node.name for node in nodes]
    assert (made.model.ir_version, made.model.producer_name) == (8, "us")
    assert made.metadata.custom_metadata_map == {"key": "value"}


@pytest.mark.parametrize("version", [b"1", b"2", b"3", b"4", b"5"])
def test_versions_that_onnxruntime_reads_too(branches: bytes, version: bytes) -> None:
    older = of_version(branches, version)
    onnxruntime.InferenceSession(older)
    assert read_proto(older) == read_proto(branches)


@pytest.mark.parametrize("version", [b"7", b"x"])
def test_a_version_that_nobody_knows(branches: bytes, version: bytes) -> None:
    with pytest.raises(NotImplemented, match=rf"version '{version.decode()}' of onnxruntime's format.*knows 1 to 6"):
        load_model(of_version(branches, version))


def test_damaged_files(branches: bytes) -> None:
    """For any bytes the result is a model, or an error that says so, soon."""
    draw = random.Random(4)
    wrong = 0
    for _ in range(400):
        data = bytearray(branches)
        for _ in range(draw.choice([1, 3, 20])):
            data[draw.randrange(8, len(data))] = draw.choice([0, 1, 4, 127, 255, draw.randrange(256)])
        try:
            load_model(bytes(data[: draw.choice([len(data), draw.randrange(12, len(data))])]))
        except PyOrtError as e:
            wrong += isinstance(e, InvalidProtobuf)
    assert wrong > 100


def test_a_small_file_is_no_huge_model() -> None:
    """A list of 20,000 names, which share one text of 20,000 letters: 400 MB in 100 KB."""
    build = flatbuffers.Builder()
    name, version = build.CreateString("n" * 20_000), build.CreateString("6")
    build.StartVector(4, 20_000, 4)
    for _ in range(20_000):
        build.PrependUOffsetTRelative(name)
    names = build.EndVector()
    graph = table(build, 7, {6: names})
    build.Finish(table(build, 2, {0: version, 1: table(build, 8, {7: graph})}), file_identifier=b"ORTM")
    with pytest.raises(InvalidProtobuf, match="its parts lie in each other"):
        load_model(bytes(build.Output()))


def table(build: flatbuffers.Builder, size: int, fields: dict[int, int]) -> int:
    """Write a table of offsets to earlier objects."""
    build.StartObject(size)
    for number, place in fields.items():
        build.PrependUOffsetTRelativeSlot(number, place, 0)
    return int(build.EndObject())


def test_what_was_written_for_one_processor(tmp_path: Path) -> None:
    """At its highest level native onnxruntime stores images in blocks, as wide as this machine's vectors."""
    text = """g (float[1,3,8,8] x) => (float[1,16,8,8] y) {
        y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w)
    }"""
    model = parse(text, {"w": RNG.standard_normal((16, 3, 3, 3)).astype(np.float32)})
    data = ort_file(model, tmp_path / "m.ort", onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    if not any(node.domain == "com.microsoft.nchwc" for node in read_proto(data).graph.node):
        pytest.skip("native onnxruntime has no blocks on this processor")
    feeds = {"x": RNG.standard_normal((1, 3, 8, 8)).astype(np.float32)}
    ((found,),) = run_plans([(compile_model(data, providers=["wasm"]), feeds)])
    np.testing.assert_allclose(found, run_native(model, feeds)[0], rtol=1e-4, atol=1e-5)


def test_a_cut_file_says_so(branches: bytes) -> None:
    with pytest.raises(InvalidProtobuf, match=r"damaged file of onnxruntime's format"):
        load_model(branches[: len(branches) // 2])


@pytest.mark.parametrize(("path", "entries"), [("m.ort", {}), ("m.onnx", {"session.save_model_format": "ORT"})])
def test_what_is_written_is_onnx(path: str, entries: dict[str, str]) -> None:
    with pytest.raises(NotImplemented, match="writes ONNX only"):
        SavedModel.of(path, entries)
    assert SavedModel.of("m.ort", {"session.save_model_format": "ONNX"}) is not None

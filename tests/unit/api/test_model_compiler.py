"""`ModelCompiler`: models optimized ahead of time, like native onnxruntime's for the CPU."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import py_ort
from py_ort import GraphOptimizationLevel, ModelCompiler, SessionOptions
from py_ort.exceptions import Fail, InvalidArgument, WrongType
from py_ort.runtime.model_compiler import OrtExternalInitializerInfo

native = pytest.importorskip("onnxruntime")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.arange(300, dtype=np.float32).reshape(3, 100)


@pytest.fixture
def model(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 3] x) => (float[N, 100] y) { a = Identity(x) b = MatMul(a, w) c = Identity(b) y = Add(c, one) }"""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in (("w", W), ("one", np.ones(1, np.float32)))
    )
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    return path


def check(path):
    np.testing.assert_allclose(native.InferenceSession(str(path)).run(None, {"x": X})[0], X @ W + 1)


def operators(module, model, path, *level):
    options = dict(zip(("graph_optimization_level",), level, strict=False))
    module.ModelCompiler(module.SessionOptions(), str(model), **options).compile_to_file(str(path))
    check(path)
    return Counter(node.op_type for node in onnx.load(path).graph.node)


@pytest.mark.parametrize("level", [[], ["ORT_DISABLE_ALL"], ["ORT_ENABLE_BASIC"]], ids=str)
def test_operators_are_those_that_onnxruntime_leaves(model, tmp_path, level):
    ours, theirs = (
        operators(module, model, tmp_path / name, *(getattr(module.GraphOptimizationLevel, each) for each in level))
        for module, name in ((py_ort, "ours.onnx"), (native, "theirs.onnx"))
    )
    assert ours == theirs


def test_bytes_and_streams(model, tmp_path):
    compiler, written = ModelCompiler(SessionOptions(), model.read_bytes()), []
    (tmp_path / "bytes.onnx").write_bytes(compiler.compile_to_bytes())
    check(tmp_path / "bytes.onnx")
    compiler.compile_to_stream(written.append)
    assert b"".join(written) == (tmp_path / "bytes.onnx").read_bytes()

    def refuse(data: bytes) -> None:
        raise KeyError("no room")

    with pytest.raises(Fail, match="no room"):
        compiler.compile_to_stream(refuse)
    with pytest.raises(InvalidArgument, match="say which file"):
        compiler.compile_to_file()


def test_the_file_beside_the_model(model):
    ModelCompiler(SessionOptions(), model).compile_to_file()
    check(model.with_name("model_ctx.onnx"))


def test_flags(model, tmp_path):
    none, exists = ModelCompiler(SessionOptions(), model, flags=1), ModelCompiler(SessionOptions(), model, flags=2)
    with pytest.raises(Fail, match="Unable to compile any nodes"):
        none.compile_to_file(tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()
    exists.compile_to_file(tmp_path / "out.onnx")
    with pytest.raises(Fail, match="exists already"):
        exists.compile_to_file(tmp_path / "out.onnx")


def test_large_initializers_in_a_file(model, tmp_path):
    compiler = ModelCompiler(SessionOptions(), model, False, "w.bin", 100)
    compiler.compile_to_file(tmp_path / "out.onnx")
    assert (tmp_path / "w.bin").stat().st_size >= W.nbytes
    check(tmp_path / "out.onnx")


def test_initializers_where_the_caller_says(model, tmp_path):
    asked = []

    def locate(name, value, info):
        asked.append((name, value.tensor_size_in_bytes(), info))
        if name != "w":
            return None
        (tmp_path / "mine.bin").write_bytes(b"????" + value.numpy().tobytes())
        return OrtExternalInitializerInfo("mine.bin", 4, value.tensor_size_in_bytes())

    ModelCompiler(SessionOptions(), model, get_initializer_location_func=locate).compile_to_file(tmp_path / "out.onnx")
    assert sorted(asked, key=lambda each: each[0]) == [("one", 4, None), ("w", W.nbytes, None)]
    check(tmp_path / "out.onnx")

    def again(name, value, info):
        assert info == (OrtExternalInitializerInfo("mine.bin", 4, W.nbytes) if name == "w" else None)
        return info

    compiler = ModelCompiler(SessionOptions(), tmp_path / "out.onnx", get_initializer_location_func=again)
    compiler.compile_to_file(tmp_path / "again.onnx")
    check(tmp_path / "again.onnx")


def test_what_is_no_model(model):
    for wrong in ("", b""):
        with pytest.raises(InvalidArgument, match="empty"):
            ModelCompiler(SessionOptions(), wrong)
    with pytest.raises(WrongType):
        ModelCompiler(SessionOptions(), 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="give one of them"):
        ModelCompiler(SessionOptions(), model, False, "w.bin", get_initializer_location_func=lambda *_: None)
    level = GraphOptimizationLevel.ORT_ENABLE_ALL
    assert ModelCompiler(SessionOptions(), model, graph_optimization_level=level).compile_to_bytes()


def test_names_of_compiled_parts_are_checked_as_native_does(model):
    compiler = ModelCompiler(SessionOptions(), model)
    for fits in ("/tmp/x/", "/tmp/x.onnx"):
        compiler.set_ep_context_binary_information(fits, "m")
    for wrong in (("", ""), ("", "m"), ("/tmp/x/", ""), ("/tmp/x", "m")):
        with pytest.raises(InvalidArgument, match="output_directory"):
            compiler.set_ep_context_binary_information(*wrong)

"""Constants of bool whose bytes are neither 0 nor 1: nonzero is true, as in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

NUMBERS = [0, 1, 2, 3, 128, 255]
OPERATORS = {
    "kept": ("Identity", TensorProto.BOOL),
    "not": ("Not", TensorProto.BOOL),
    "and": ("And", TensorProto.BOOL),
    "equal": ("Equal", TensorProto.BOOL),
    "chosen": ("Where", TensorProto.FLOAT),
    "cast": ("Cast", TensorProto.FLOAT),
}
MORE = {"And": ["c"], "Equal": ["c"], "Where": ["one", "x"]}
FEEDS = {"x": np.zeros(6, np.float32), "c": np.ones(6, bool)}


def model(path, how: str) -> str:
    b = helper.make_tensor("b", TensorProto.BOOL, [6], bytes(NUMBERS), raw=True)
    if how != "raw":
        b.ClearField("raw_data")
    if how == "numbers":
        b.int32_data.extend(NUMBERS)
    if how == "external":
        b.data_location = TensorProto.EXTERNAL
        b.external_data.add(key="location", value="b.bin")
        (path / "b.bin").write_bytes(bytes(NUMBERS))
    nodes = [
        helper.make_node(op_type, ["b", *MORE.get(op_type, [])], [name], **({"to": dtype} if op_type == "Cast" else {}))
        for name, (op_type, dtype) in OPERATORS.items()
    ]
    inputs = [helper.make_tensor_value_info(n, t, [6]) for n, t in (("x", TensorProto.FLOAT), ("c", TensorProto.BOOL))]
    outputs = [helper.make_tensor_value_info(name, dtype, [6]) for name, (_, dtype) in OPERATORS.items()]
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    graph = helper.make_graph(nodes, "g", inputs, outputs, [b, one])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, path / "model.onnx")
    return str(path / "model.onnx")


@pytest.mark.parametrize("providers", [["wasm"], ["webgpu", "wasm"]], ids=["wasm", "webgpu"])
@pytest.mark.parametrize("how", ["raw", "numbers", "external"])
def test_what_is_not_0_is_true(new_session, tmp_path, how, providers):
    native = pytest.importorskip("onnxruntime")
    session = new_session(model(tmp_path, how), providers=providers)
    # It maps a file's bytes, and its kernels read them differently: their reading of raw data is the reference.
    expected = native.InferenceSession(model(tmp_path, "raw")).run(None, FEEDS)
    for name, found, wanted in zip(OPERATORS, session.run(None, FEEDS), expected, strict=True):
        assert found.tobytes() == wanted.tobytes(), name

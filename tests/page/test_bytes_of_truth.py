"""Constants of bool whose bytes are neither 0 nor 1: nonzero is true, as in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from text_form import parse

NUMBERS = [0, 1, 2, 3, 128, 255]
TEXT = """g (float[6] x, bool[6] c)
    => (bool[6] kept, bool[6] not, bool[6] and, bool[6] equal, float[6] chosen, float[6] cast) {
    kept = Identity(b)  not = Not(b)  and = And(b, c)  equal = Equal(b, c)  chosen = Where(b, one, x)
    cast = Cast<to = 1>(b) }"""
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
    made = parse(TEXT, {"one": np.float32(1)}, opset=17)
    made.graph.initializer.append(b)
    onnx.save(made, path / "model.onnx")
    return str(path / "model.onnx")


@pytest.mark.parametrize("providers", [["wasm"], ["webgpu", "wasm"]], ids=["wasm", "webgpu"])
@pytest.mark.parametrize("how", ["raw", "numbers", "external"])
def test_what_is_not_0_is_true(new_session, tmp_path, how, providers):
    native = pytest.importorskip("onnxruntime")
    session = new_session(model(tmp_path, how), providers=providers)
    # It maps a file's bytes, and its kernels read them differently: their reading of raw data is the reference.
    expected = native.InferenceSession(model(tmp_path, "raw")).run(None, FEEDS)
    for output, found, wanted in zip(session.get_outputs(), session.run(None, FEEDS), expected, strict=True):
        assert found.tobytes() == wanted.tobytes(), output.name

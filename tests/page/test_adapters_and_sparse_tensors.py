"""LoRA adapters and sparse tensors in runs."""

from __future__ import annotations

import numpy as np
import pytest
import small_models
from onnx import TensorProto, helper
from text_form import parse

import py_ort
from py_ort import AdapterFormat, LoraAdapter, OrtDevice, OrtValue, RunOptions, SparseTensor
from py_ort.exceptions import InvalidArgument

native = pytest.importorskip("onnxruntime")
X, W = np.ones((4, 4), np.float32), np.arange(16, dtype=np.float32).reshape(4, 4)


def with_adapter() -> bytes:
    text = """g (float[4, 4] x, float[4, d] a, float[d, 4] b) => (float[4, 4] y) {
        p = MatMul(x, w) q = MatMul(x, a) r = MatMul(q, b) y = Add(p, r) }"""
    constants = {"w": W, "a": np.zeros((4, 0), np.float32), "b": np.zeros((0, 4), np.float32)}
    return parse(text, constants, opset=17).SerializeToString()


def test_an_adapter_is_fed(new_session, tmp_path):
    a, b = np.full((4, 2), 2, np.float32), np.full((2, 4), 3, np.float32)
    made = AdapterFormat()
    made.set_parameters({"a": OrtValue(a), "b": OrtValue(b)})
    made.export_adapter(tmp_path / "adapter")
    adapter, options = LoraAdapter(), RunOptions()
    adapter.Load(tmp_path / "adapter")
    options.add_active_adapter(adapter)
    session = new_session(with_adapter())
    for given, expected in ((None, X @ W), (options, X @ W + X @ a @ b), (RunOptions(), X @ W)):
        np.testing.assert_allclose(session.run(None, {"x": X}, given)[0], expected)
    np.testing.assert_allclose(session.run(None, {"x": X, "a": a * 2}, options)[0], X @ W + 2 * X @ a @ b)
    other = new_session(with_adapter().replace(b"\x0a\x01b", b"\x0a\x01c"), providers=["wasm"])
    with pytest.raises(InvalidArgument, match="no input 'b'"):
        other.run(None, {"x": X}, options)


def product() -> bytes:
    a = helper.make_sparse_tensor_value_info("a", TensorProto.FLOAT, [9, 9])
    b, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [9, 9]) for name in "by")
    node = helper.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft")
    return small_models.model([node], [a, b], [y], domains=["com.microsoft"])


def test_a_sparse_input(new_session):
    session, theirs = new_session(product()), native.InferenceSession(product())
    random = np.random.default_rng(3)
    places, b = np.array([[0, 1], [2, 2], [8, 0]]), random.normal(size=(9, 9)).astype(np.float32)
    shape, values = [9, 9], np.array([1, 2, 3], np.float32)
    assert [arg.shape for arg in session.get_inputs()] == [arg.shape for arg in theirs.get_inputs()]

    def run(module, session):
        tensor = module.SparseTensor.sparse_coo_from_numpy(shape, values, places, module.OrtDevice.make("cpu", 0))
        feeds = {"a": module.OrtValue.ort_value_from_sparse_tensor(tensor), "b": module.OrtValue.ortvalue_from_numpy(b)}
        (value,) = session.run_with_ort_values(["y"], feeds)
        return value.numpy()

    np.testing.assert_allclose(run(py_ort, session), run(native, theirs), rtol=1e-5)
    small = SparseTensor.sparse_coo_from_numpy([8, 9], values, places[:2][[0, 1, 0]], OrtDevice.make("cpu", 0))
    for wrong in (small, OrtValue(b.astype(np.float64)), "text"):
        with pytest.raises(InvalidArgument, match="'a'"):
            session.run(None, {"a": wrong, "b": b})


@pytest.mark.parametrize("declared", [helper.make_sparse_tensor_value_info, helper.make_tensor_value_info])
@pytest.mark.parametrize("by_node", [False, True])
def test_a_sparse_output(new_session, declared, by_node):
    """A sparse constant stays sparse, even if the model declares it dense; values computed from it are dense."""
    values = helper.make_tensor("s", TensorProto.FLOAT, [3], [1.5, 2.5, 3.5])
    places = helper.make_tensor("i", TensorProto.INT64, [3], [2, 3, 5])
    outputs = [declared("s", TensorProto.FLOAT, [3, 3]), helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])]
    constant = helper.make_sparse_tensor(values, places, [3, 3])
    nodes = [helper.make_node("Constant", [], ["s"], sparse_value=constant)] if by_node else []
    nodes.append(helper.make_node("Identity", ["s"], ["y"]))
    graph = helper.make_graph(nodes, "g", [], outputs, sparse_initializer=[] if by_node else [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    for session in (new_session(model), native.InferenceSession(model)):
        sparse, dense = session.run_with_ort_values(["s", "y"], {})
        found = sparse.as_sparse_tensor()
        assert (found.dense_shape(), found.values().tolist()) == ([3, 3], [1.5, 2.5, 3.5])
        assert found.as_coo_view().indices().tolist() == [2, 3, 5]
        assert [type(value).__name__ for value in session.run(None, {})] == ["SparseTensor", "ndarray"]
        assert dense.numpy().ravel().nonzero()[0].tolist() == [2, 3, 5]

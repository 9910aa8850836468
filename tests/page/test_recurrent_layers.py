"""Recurrent layers: sequences of no steps, and activations whose numbers the model omits."""

from typing import Any

import numpy as np
import onnx
import pytest
from native import native_session
from onnx import TensorProto, helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _model(op_type: str, initial: bool, **attributes: Any) -> bytes:
    rng = np.random.default_rng(4)
    shapes = {"w": (2, GATES[op_type] * 3, 2), "r": (2, GATES[op_type] * 3, 3)}
    constants = [onnx.numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), n) for n, s in shapes.items()]
    outputs = ["y", "h", "c"][: 3 if op_type == "LSTM" else 2]
    states = ["h0", "c0"][: len(outputs) - 1] if initial else []
    constants += [onnx.numpy_helper.from_array(np.full((2, 3, 3), 0.5, np.float32), name) for name in states]
    inputs_of_node = ["x", "w", "r", "", "lengths", *states]
    attributes |= {"hidden_size": 3, "direction": "bidirectional"}
    node = helper.make_node(op_type, inputs_of_node, outputs, **attributes)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 3, 2]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, [3]),
    ]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9).SerializeToString()


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("initial", [False, True], ids=["zeros", "initial"])
@pytest.mark.parametrize("op_type", GATES)
def test_no_steps(new_session, op_type, initial, provider):
    """Its last states are zeros, and neither the initial ones nor another run's."""
    session = new_session(_model(op_type, initial), providers=[provider])
    x = np.random.default_rng(5).standard_normal((4, 3, 2)).astype(np.float32)
    session.run(None, {"x": x, "lengths": np.array([4, 3, 2], np.int32)})
    y, *states = session.run(None, {"x": x, "lengths": np.array([4, 0, 2], np.int32)})
    assert not y[:, :, 1].any()
    for state in states:
        assert not state[:, 1].any() and state[:, 0].all()


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("numbers", [{}, {"activation_alpha": [0.3]}, {"activation_beta": [0.3]}], ids=str)
@pytest.mark.parametrize("activation", ["Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu"])
def test_activations_without_numbers(new_session, activation, numbers, provider):
    names = ["Sigmoid", activation, "HardSigmoid"] * 2
    model = _model("LSTM", True, activations=names, **numbers)
    feeds = {"x": np.random.default_rng(5).standard_normal((4, 3, 2)).astype(np.float32)}
    feeds["lengths"] = np.array([4, 3, 2], np.int32)
    wanted = native_session(model).run(None, feeds)
    for a, b in zip(new_session(model, providers=[provider]).run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)

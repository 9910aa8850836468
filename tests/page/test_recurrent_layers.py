"""Recurrent layers: sequences of no steps, and activations whose numbers the model omits."""

from typing import Any

import numpy as np
import onnx
import pytest
from array_models import assert_as_native, model_of, random_floats
from onnx import helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


FEEDS = random_floats(5, x=(4, 3, 2)) | {"lengths": np.array([4, 3, 2], np.int32)}


def _model(op_type: str, initial: bool, **attributes: Any) -> onnx.ModelProto:
    outputs = ["y", "h", "c"][: 3 if op_type == "LSTM" else 2]
    states = ["h0", "c0"][: len(outputs) - 1] if initial else []
    attributes |= {"hidden_size": 3, "direction": "bidirectional"}
    node = helper.make_node(op_type, ["x", "w", "r", "", "lengths", *states], outputs, **attributes)
    weights = random_floats(4, w=(2, GATES[op_type] * 3, 2), r=(2, GATES[op_type] * 3, 3))
    return model_of([node], FEEDS, outputs, weights | dict.fromkeys(states, np.full((2, 3, 3), 0.5, np.float32)))


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("initial", [False, True], ids=["zeros", "initial"])
@pytest.mark.parametrize("op_type", GATES)
def test_no_steps(new_session, op_type, initial, provider):
    """Its last states are zeros, and neither the initial ones nor another run's."""
    session = new_session(_model(op_type, initial), providers=[provider])
    session.run(None, FEEDS)
    y, *states = session.run(None, FEEDS | {"lengths": np.array([4, 0, 2], np.int32)})
    assert not y[:, :, 1].any()
    for state in states:
        assert not state[:, 1].any() and state[:, 0].all()


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("numbers", [{}, {"activation_alpha": [0.3]}, {"activation_beta": [0.3]}], ids=str)
@pytest.mark.parametrize("activation", ["Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu"])
def test_activations_without_numbers(new_session, activation, numbers, provider):
    names = ["Sigmoid", activation, "HardSigmoid"] * 2
    model = _model("LSTM", True, activations=names, **numbers)
    assert_as_native(new_session(model, providers=[provider]), model, FEEDS)

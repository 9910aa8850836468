"""Outputs in the place of an input: the results are right in each run, and one tensor less is needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from drawn_networks import drawn
from native import native_session
from onnx import TensorProto, helper, numpy_helper

from py_ort import InferenceSession

SIZE = (1, 8, 24, 24)
BYTES = 4 * 8 * 24 * 24


def _model(nodes: list[onnx.NodeProto], weights: dict[str, tuple[int, ...]], outputs: list[str]) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    kept = [
        numpy_helper.from_array(rng.standard_normal(dims).astype(np.float32), name) for name, dims in weights.items()
    ]
    graph = helper.make_graph(
        nodes,
        "in_place",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SIZE)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        kept,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def _conv(x: str, w: str, y: str, kernel: int = 1, group: int = 1) -> onnx.NodeProto:
    return helper.make_node("Conv", [x, w], [y], kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, group=group)


_node = helper.make_node
#: Nodes, weights, outputs, and the number of tensors needed at one time.
CASES: dict[str, tuple[list[onnx.NodeProto], dict[str, tuple[int, ...]], list[str], int]] = {
    "elementwise": (
        [_node("CumSum", ["x", "axis"], ["a"]), _node("Softplus", ["a"], ["b"]), _node("Mul", ["b", "x"], ["y"])],
        {"axis": ()},
        ["y"],
        2,
    ),
    "a residual that is bound twice": (
        [_conv("x", "w", "a"), _conv("a", "v", "b", 3), _node("Add", ["b", "a"], ["c"]), _node("Relu", ["c"], ["y"])],
        {"w": (8, 8, 1, 1), "v": (8, 8, 3, 3)},
        ["y"],
        2,
    ),
    "a residual": (
        [_conv("x", "w", "a"), _conv("a", "v", "b", 3, 8), _conv("b", "u", "c"), _node("Add", ["c", "a"], ["y"])],
        {"w": (8, 8, 1, 1), "v": (8, 1, 3, 3), "u": (8, 8, 1, 1)},
        ["y"],
        2,
    ),
    "a residual of a product": (
        [
            _node("Softplus", ["x"], ["a"]),
            _node("MatMul", ["a", "w"], ["b"]),
            _node("MatMul", ["b", "v"], ["c"]),
            _node("Add", ["c", "a"], ["d"]),
            _node("Tanh", ["d"], ["y"]),
        ],
        {"w": (24, 24), "v": (24, 24)},
        ["y"],
        2,
    ),
    "what is an output too": (
        [_conv("x", "w", "a"), _conv("a", "v", "b"), _node("Add", ["b", "a"], ["y"])],
        {"w": (8, 8, 1, 1), "v": (8, 8, 1, 1)},
        ["y", "a"],
        3,
    ),
}


def _agrees(session: InferenceSession, model: onnx.ModelProto, shape: tuple[int, ...], tolerance: float) -> None:
    native = native_session(model)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        for actual, expected in zip(session.run(None, {"x": x}), native.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_an_output_in_the_place_of_an_input(case: str, new_session: Callable[..., InferenceSession]) -> None:
    nodes, weights, outputs, tensors = CASES[case]
    model = _model(nodes, weights, outputs)
    if "axis" in weights:
        model.graph.initializer[list(weights).index("axis")].CopyFrom(numpy_helper.from_array(np.array(3), "axis"))
    session = new_session(model.SerializeToString(), providers=["webgpu"])
    _agrees(session, model, SIZE, 1e-4)
    assert session.memory()["webgpu"]["peak"] <= (tensors + 0.1) * BYTES


@pytest.mark.parametrize("name", ["convolutional 1", "transformer 2"])
def test_a_network_drawn_at_random(name: str, new_session: Callable[..., InferenceSession]) -> None:
    model = drawn(name)
    shape = tuple(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)
    _agrees(new_session(model.SerializeToString(), providers=["webgpu"]), model, shape, 2e-3)

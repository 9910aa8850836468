"""Means of quantized images, equal to native onnxruntime's to the last bit: many are halfway between two steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from contributed_cases import PROVIDERS, NewSession
from onnx import TensorProto, helper, numpy_helper

from py_ort.testing.native_model import NativeModel

_COUNT = 20
#: Steps and zero point, of images and of means.
_STEPS = (np.float32(0.0371), np.int8(-7))


def _window(rng: np.random.Generator, axes: int) -> dict[str, Any]:
    kernel = [int(rng.integers(2, 5)) for _ in range(axes)]
    ends = [int(rng.integers(0, size)) for size in (*kernel, *kernel)]
    return {
        "kernel_shape": kernel,
        "strides": [int(rng.integers(1, 3)) for _ in kernel],
        "pads": ends if rng.random() < 0.6 else [0] * len(ends),
        "count_include_pad": int(rng.integers(0, 2)),
    }


def _pools() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Pools of one, two and three axes, each between roundings to bytes."""
    rng = np.random.default_rng(17)
    weights = [numpy_helper.from_array(np.asarray(value), name) for value, name in zip(_STEPS, "sz", strict=True)]
    nodes, inputs, outputs, feeds = [], [], [], {}
    for i in range(_COUNT):
        axes = int(rng.choice([1, 2, 2, 2, 3]))
        shape = [int(rng.integers(1, 3)), int(rng.choice([3, 8, 12, 16, 32])), *rng.integers(5, 9, axes).tolist()]
        nodes += [
            helper.make_node("QuantizeLinear", [f"x{i}", "s", "z"], [f"a{i}"]),
            helper.make_node("DequantizeLinear", [f"a{i}", "s", "z"], [f"b{i}"]),
            helper.make_node("AveragePool", [f"b{i}"], [f"c{i}"], **_window(rng, axes)),
            helper.make_node("QuantizeLinear", [f"c{i}", "s", "z"], [f"d{i}"]),
            helper.make_node("DequantizeLinear", [f"d{i}", "s", "z"], [f"y{i}"]),
        ]
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None))
        feeds[f"x{i}"] = rng.integers(-121, 135, shape).astype(np.float32) * _STEPS[0]
    graph = helper.make_graph(nodes, "pools", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


def test_means_round_as_native_ones(new_session: NewSession) -> None:
    """The zero point is added before, in unsigned form."""
    model, feeds = _pools()
    wanted = NativeModel(model.SerializeToString()).run(feeds)
    session = new_session(model.SerializeToString(), providers=PROVIDERS["wasm"])
    assert {node.op_type for node in session.placement().nodes} >= {"QLinearAveragePool"}
    for i, (got, expected) in enumerate(zip(session.run(None, feeds), wanted, strict=True)):
        np.testing.assert_array_equal(got, expected, err_msg=f"pool {i}")

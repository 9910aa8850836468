"""Convolutions that onnxruntime wrote channels-last into a model."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from plans_in_node import run_plans
from standard_form import run_native

from py_ort.compiler import compile_model
from py_ort.exceptions import InvalidGraph

NHWC = "com.ms.internal.nhwc"
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 7, 6, 3)).astype(np.float32)
W = RNG.standard_normal((4, 3, 3, 2)).astype(np.float32)
B = RNG.standard_normal(4).astype(np.float32)
Z = RNG.standard_normal((2, 5, 5, 4)).astype(np.float32)


def _model(node, shapes, opsets, weights, outputs=("y",)):
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(
        node,
        "g",
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets.items()], ir_version=8)


@pytest.mark.parametrize("activation", [None, "Relu", "LeakyRelu"])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("opsets", [{NHWC: 1}, {NHWC: 11}, {"": 17, NHWC: 17}], ids=str)
def test_as_the_plain_one(activation, added, opsets):
    attributes = {"kernel_shape": [3, 2]} if "" not in opsets else {}
    fused = {"activation": activation} if activation else {}
    fused |= {"activation_params": [0.2]} if activation == "LeakyRelu" else {}
    names = ["x", "w", "b", *(["z"] if added else [])]
    node = helper.make_node("Conv", names, ["y"], domain=NHWC, name="conv", **attributes, **fused)
    shapes = {"x": X.shape, **({"z": Z.shape} if added else {})}
    ours = _model([node], shapes, opsets, {"w": W, "b": B})
    feeds = {"x": X, **({"z": Z} if added else {})}
    (found,) = run_plans([(compile_model(ours.SerializeToString(), providers=["wasm"]), feeds)])

    plain = helper.make_node("Conv", ["x", "w", "b"], ["y"])
    first = {name: np.ascontiguousarray(np.moveaxis(value, -1, 1)) for name, value in feeds.items()}
    native = _model([plain], {"x": first["x"].shape}, {"": 17}, {"w": W, "b": B})
    wanted = np.moveaxis(run_native(native, {"x": first["x"]})[0], 1, -1) + (Z if added else 0)
    if activation:
        wanted = np.maximum(wanted, 0) + (0.2 * np.minimum(wanted, 0) if activation == "LeakyRelu" else 0)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-4)


def test_one_of_unknown_rank_is_refused():
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain=NHWC, name="conv")
    model = _model([node], {"x": None, "w": None}, {"": 17, NHWC: 17}, {})
    with pytest.raises(InvalidGraph, match="py_ort's own"):
        compile_model(model.SerializeToString(), providers=["wasm"])

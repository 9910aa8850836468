"""Convolutions whose images and weights change their sizes from run to run, or have more than three spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contributed_cases import PROVIDERS
from onnx import TensorProto, helper, numpy_helper

from py_ort.testing.native_model import NativeModel

#: Sizes of X and of the weights, in the order of runs: one of them changes, or both do, and return.
_RUNS = (
    ((1, 4, 9, 8), (6, 4, 3, 3)),
    ((2, 4, 5, 11), (6, 4, 3, 3)),
    ((2, 4, 5, 11), (8, 4, 1, 5)),
    ((1, 3, 7, 7), (5, 3, 2, 2)),
    ((1, 4, 9, 8), (6, 4, 3, 3)),
)


def test_each_run_goes_by_its_own_sizes(new_session):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4) for name in "xwy"]
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 0, 1, 2], strides=[1, 2])
    graph = helper.make_graph([node], "sizes", infos[:2], infos[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    native, session = NativeModel(model), new_session(model, providers=PROVIDERS["wasm"])
    rng = np.random.default_rng(1)
    for sizes in _RUNS:
        feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in zip("xw", sizes, strict=True)}
        (found,), (wanted,) = session.run(None, feeds), native.run(feeds)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


_WINDOW: dict[str, Any] = {"group": 2, "strides": [2, 1, 2, 1], "pads": [1, 0, 1, 0, 1, 1, 0, 0]}
_X, _W = (2, 4, 5, 4, 6, 5), (4, 2, 3, 2, 3, 2)
#: Over four spatial axes, and five: the operator, attributes, sizes of X and of the weights.
_MANY_AXES: dict[str, tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    "window": ("Conv", {**_WINDOW, "dilations": [1, 2, 1, 1]}, _X, _W),
    "same": ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 1, 2, 1]}, _X, (3, 4, 3, 2, 3, 2)),
    "five axes": ("Conv", {}, (1, 2, 4, 3, 3, 3, 3), (3, 2, 2, 2, 2, 2, 2)),
    "transposed": ("ConvTranspose", {**_WINDOW, "output_padding": [1, 0, 0, 0]}, (2, 4, 3, 2, 3, 2), _W),
    "transposed, sizes": ("ConvTranspose", {"strides": [2, 1, 2, 1], "output_shape": [6, 3, 7, 4]}, _X, _W),
    "transposed, same": ("ConvTranspose", {"auto_pad": "SAME_LOWER", "strides": [2, 1, 2, 1]}, _X, _W),
}


@pytest.mark.browser
@pytest.mark.parametrize("known", [True, False], ids=["", "free"])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("op", "attributes", "x", "w"), _MANY_AXES.values(), ids=_MANY_AXES)
def test_many_axes(new_session, op, attributes, x, w, provider, known):
    rng = np.random.default_rng(2)
    channels = w[0] if op == "Conv" else w[1] * attributes.get("group", 1)
    held = {"w": rng.standard_normal(w).astype(np.float32), "b": rng.standard_normal(channels).astype(np.float32)}
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x if known else [None] * len(x))]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node(op, ["x", *held], ["y"], **attributes)
    weights = [numpy_helper.from_array(value, name) for name, value in held.items()]
    graph = helper.make_graph([node], "axes", infos, [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
    feeds = {"x": rng.standard_normal(x).astype(np.float32)}
    (found,), (wanted,) = new_session(model, providers=[provider]).run(None, feeds), NativeModel(model).run(feeds)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)

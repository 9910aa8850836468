"""Convolutions in one session whose images and weights change their sizes from run to run."""

from __future__ import annotations

import numpy as np
from contributed_cases import PROVIDERS, NewSession
from onnx import TensorProto, helper

from py_ort.testing.native_model import NativeModel

#: Of X and of the weights, in the order of runs: one of them changes, or both do, and come back.
_RUNS = (
    ((1, 4, 9, 8), (6, 4, 3, 3)),
    ((2, 4, 5, 11), (6, 4, 3, 3)),
    ((2, 4, 5, 11), (8, 4, 1, 5)),
    ((1, 3, 7, 7), (5, 3, 2, 2)),
    ((1, 4, 9, 8), (6, 4, 3, 3)),
)


def test_each_run_goes_by_its_own_sizes(new_session: NewSession) -> None:
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

"""The onnx package's models without weights, with random ones, compared with native onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import pytest
from native import native_session
from onnx import numpy_helper

FOLDER = Path(onnx.backend.test.__file__).parent / "data/light"
MODELS = ["squeezenet", "shufflenet", "inception_v1", "resnet50", "densenet121"]


def with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Insert random weights, of sizes that keep activations near 1, where the model makes constants of a shape.

    A final softmax is removed: of large numbers it would only show which one is the largest.
    """
    rng = np.random.default_rng(3)
    graph = model.graph
    shapes = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    norms = [node for node in graph.node if node.op_type == "BatchNormalization"]
    ranges = {node.input[1]: (0.5, 1) for node in norms} | {node.input[4]: (1, 2) for node in norms}
    kept = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        name, shape = node.output[0], tuple(int(size) for size in shapes[node.input[0]])
        weights = rng.uniform(*ranges[name], shape) if name in ranges else rng.standard_normal(shape) * 0.1
        if len(shape) > 1:
            weights = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
        graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), name))
    if kept[-1].op_type == "Softmax":
        graph.output[0].name = kept.pop().input[0]
    del graph.node[:]
    graph.node.extend(kept)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_equals_onnxruntime(new_session, name: str):
    import onnxruntime

    data = with_weights(onnx.load(FOLDER / f"light_{name}.onnx")).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    native = native_session(data, options)
    (x,) = native.get_inputs()
    feeds = {x.name: np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)}
    session = new_session(data, providers=["wasm"])
    (found,), (wanted,) = session.run(None, feeds), native.run(None, feeds)
    assert 0.01 < wanted.std() < 1e4
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3 * max(1, float(np.abs(wanted).max())))

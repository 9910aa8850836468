"""Models whose images native onnxruntime stored in blocks of channels, as wide as its processor's vectors."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from plans_in_node import run_plans
from standard_form import run_native

from py_ort.compiler import compile_model
from py_ort.compiler.load import channel_blocks
from py_ort.exceptions import NotImplemented

NCHWC = "com.microsoft.nchwc"
RNG = np.random.default_rng(5)
NODE = helper.make_node


def _weights(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array((RNG.standard_normal(shape) * 0.2).astype(np.float32), name)


def _model(nodes, image, weights, outputs=("y",), opset: int = 13) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, image)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        weights,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(NCHWC, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def _saved(model: bytes, folder: Path) -> bytes:
    """Let native onnxruntime write it at its highest level."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath, options.log_severity_level = str(folder / "saved.onnx"), 3
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    data = (folder / "saved.onnx").read_bytes()
    if not any(node.domain == NCHWC for node in onnx.load_from_string(data).graph.node):
        pytest.skip("native onnxruntime has no blocks on this processor")
    return data


def _mixed(opset: int) -> bytes:
    """Images in ONNX's order, depthwise, pointwise and residual convolutions, partial blocks, and back."""
    nodes = [
        NODE("Conv", ["x", "w0", "b0"], ["stem"], pads=[1, 1, 1, 1], strides=[2, 2]),
        NODE("Relu", ["stem"], ["a"]),
        NODE("Conv", ["a", "w1"], ["depthwise"], pads=[1, 1, 1, 1], group=24),
        NODE("LeakyRelu", ["depthwise"], ["b"], alpha=0.3),
        NODE("Conv", ["b", "w2"], ["c"]),
        NODE("Conv", ["a", "w3"], ["d"]),
        NODE("Add", ["c", "d"], ["e"]),
        NODE("Relu", ["e"], ["sum"]),
        NODE("Conv", ["sum", "w4"], ["f"], kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        NODE("Sigmoid", ["f"], ["g"]),
        NODE("MaxPool", ["g"], ["h"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        NODE("Conv", ["h", "w5"], ["i"], group=2, pads=[1, 1, 1, 1]),
        NODE("GlobalAveragePool", ["i"], ["y"]),
    ]
    weights = [_weights("w0", 24, 3, 3, 3), _weights("b0", 24), _weights("w1", 24, 1, 3, 3)]
    weights += [_weights("w2", 36, 24, 1, 1), _weights("w3", 36, 24, 1, 1), _weights("w4", 64, 36, 3, 3)]
    return _model(nodes, [2, 3, 32, 32], [*weights, _weights("w5", 96, 32, 3, 3)], ("y", "sum"), opset)


def _from_outside() -> bytes:
    """Pools and Upsample of an image that no convolution before them made."""
    nodes = [
        NODE("Exp", ["x"], ["a"]),
        NODE("AveragePool", ["a"], ["b"], kernel_shape=[2, 3], pads=[0, 1, 1, 0], count_include_pad=1),
        NODE("Resize", ["b", "", "scales"], ["c"], mode="linear", coordinate_transformation_mode="half_pixel"),
        NODE("Conv", ["c", "w0"], ["d"]),
        NODE("Concat", ["d", "d"], ["e"], axis=1),
        NODE("Conv", ["e", "w1"], ["f"]),
        NODE("Resize", ["f", "", "scales"], ["y"], mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric"),
    ]  # fmt: skip
    scales = numpy_helper.from_array(np.array([1, 1, 2, 3], np.float32), "scales")
    return _model(nodes, [1, 48, 7, 6], [scales, _weights("w0", 64, 48, 1, 1), _weights("w1", 20, 128, 1, 1)])


@pytest.mark.parametrize("name", ["mixed 8", "mixed 12", "mixed 19", "from outside"])
def test_as_native_runs_it(name: str, tmp_path: Path) -> None:
    model = _from_outside() if name == "from outside" else _mixed(int(name.split()[1]))
    feeds = {"x": RNG.standard_normal([1, 48, 7, 6] if name == "from outside" else [2, 3, 32, 32]).astype(np.float32)}
    wanted = run_native(onnx.load_from_string(model), feeds)
    saved = compile_model(_saved(model, tmp_path), providers=["wasm"])
    (found,) = run_plans([(saved, feeds)])
    for ours, native in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, native, rtol=1e-4, atol=1e-5)


def _in_blocks(weights: np.ndarray, block: int) -> np.ndarray:
    """Order weights like native onnxruntime for convolutions between images in blocks."""
    out, each, *window = weights.shape
    parts = weights.reshape(out // block, block, each // block, block, *window)
    return np.ascontiguousarray(parts.transpose(0, 2, 4, 5, 3, 1)).reshape(weights.shape)


def _of_blocks(weights: np.ndarray, block: int, channels: int) -> bytes:
    nodes = [
        NODE("ReorderInput", ["x"], ["a"], domain=NCHWC),
        NODE("Conv", ["a", "w"], ["b"], domain=NCHWC, pads=[1, 1, 1, 1], name="conv"),
        NODE("ReorderOutput", ["b"], ["y"], domain=NCHWC, channels=channels),
    ]
    return _model(nodes, [1, 32, 5, 4], [numpy_helper.from_array(_in_blocks(weights, block), "w")])


@pytest.mark.parametrize(
    ("block", "out", "channels", "here"), [(8, 24, 20, 16), (16, 48, 36, 8), (8, 64, 64, 8), (16, 64, 64, 16)]
)
def test_blocks_of_either_size(monkeypatch, caplog, block: int, out: int, channels: int, here: int) -> None:
    """Sizes determine the block; if they do not, this machine's processor does, and a warning says so."""
    told = out != channels
    monkeypatch.setattr(channel_blocks, "_of_this_machine", lambda: here)
    weights = RNG.standard_normal((out, 32, 3, 3)).astype(np.float32)
    feeds = {"x": RNG.standard_normal((1, 32, 5, 4)).astype(np.float32)}
    with caplog.at_level(logging.WARNING, "py_ort"):
        plan = compile_model(_of_blocks(weights, block, channels), providers=["wasm"])
    assert ("channels in blocks" in caplog.text) == (not told)
    plain = _model([NODE("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], [1, 32, 5, 4], [
        numpy_helper.from_array(weights[:channels], "w")])  # fmt: skip
    ((found,),) = run_plans([(plan, feeds)])
    (wanted,) = run_native(onnx.load_from_string(plain), feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_of_a_size_that_nobody_knows(monkeypatch) -> None:
    monkeypatch.setattr(channel_blocks, "_of_this_machine", lambda: None)
    model = _of_blocks(np.ones((64, 32, 3, 3), np.float32), 16, 64)
    with pytest.raises(NotImplemented, match=r"nchwc::Conv, .* for the processor it ran on.*ORT_ENABLE_EXTENDED"):
        compile_model(model, providers=["wasm"])


def test_an_import_alone_says_nothing_of_blocks(caplog: pytest.LogCaptureFixture) -> None:
    """Native onnxruntime writes the import into every model that it optimizes."""
    with caplog.at_level(logging.WARNING, "py_ort"):
        compile_model(_model([NODE("Relu", ["x"], ["y"])], [1, 3, 4, 4], []))
    assert not caplog.records

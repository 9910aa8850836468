"""Networks quantized by onnxruntime's quantizer, in its forms, equal to native onnxruntime to the last unit."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from bert import bert
from onnx import TensorProto, helper, numpy_helper

from py_ort import InferenceSession, SessionOptions
from py_ort.testing.native_model import NativeModel

quantization = pytest.importorskip("onnxruntime.quantization")
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType  # noqa: E402

WEBNN = Path(__file__).parents[2] / "build/webnn/chromium"
UNSIGNED = {"activation_type": QuantType.QUInt8}
QOPERATOR = {"quant_format": QuantFormat.QOperator}
FORMS: dict[str, dict[str, Any] | None] = {
    "qdq": {},
    "qdq-per-channel": {"per_channel": True},
    "qdq-unsigned": UNSIGNED,
    "qdq-all-unsigned": {**UNSIGNED, "weight_type": QuantType.QUInt8},
    "qdq-16-bits": {"activation_type": QuantType.QUInt16, "extra_options": {"UseQDQContribOps": True}},
    "qoperator": {**QOPERATOR, **UNSIGNED},
    "qoperator-per-channel": {**QOPERATOR, "per_channel": True},
    "dynamic": None,
}


class _Network:
    """Collects nodes and random weights."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, *shape: int) -> str:
        spread = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.1
        name = f"w{len(self.weights)}"
        values = (self.rng.standard_normal(shape) * spread).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name


def network() -> onnx.ModelProto:
    """Convolutions of all kinds, a sum, pools, activations, a concatenation, a dense layer."""
    net = _Network()
    same = {"pads": [1, 1, 1, 1]}
    x = net.add("Relu", net.add("Conv", "x", net.constant(16, 3, 3, 3), net.constant(16), strides=[2, 2], **same))
    deep = net.add("Relu", net.add("Conv", x, net.constant(16, 1, 3, 3), net.constant(16), group=16, **same))
    x = net.add("Add", net.add("Conv", deep, net.constant(16, 16, 1, 1)), x)
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    left = net.add("LeakyRelu", net.add("Conv", x, net.constant(24, 16, 3, 3), net.constant(24), **same), alpha=0.1)
    wide = {"pads": [2, 2, 2, 2], "dilations": [2, 2]}
    right = net.add("Sigmoid", net.add("Conv", x, net.constant(8, 8, 3, 3), group=2, **wide))
    x = net.add("AveragePool", net.add("Concat", left, right, axis=1), kernel_shape=[2, 2], strides=[2, 2])
    gate = net.add("Sigmoid", net.add("Conv", net.add("GlobalAveragePool", x), net.constant(32, 32, 1, 1)))
    x = net.add("Flatten", net.add("GlobalAveragePool", net.add("Mul", x, gate)))
    y = net.add("Softmax", net.add("Gemm", x, net.constant(10, 32), net.constant(10), transB=1))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])]
    outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, ["n", 10])]
    graph = helper.make_graph(net.nodes, "network", inputs, outputs, net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def images(seed: int) -> np.ndarray:
    """Two random images."""
    return np.random.default_rng(seed).standard_normal((2, 3, 32, 32)).astype(np.float32)


class _Images(CalibrationDataReader):
    def __init__(self) -> None:
        self._left = iter([{"x": images(seed)} for seed in range(3)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._left, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the network in all its forms."""
    made = tmp_path_factory.mktemp("quantized")
    onnx.save(network(), made / "float.onnx")
    logging.disable(logging.WARNING)  # advice to preprocess the model
    for name, options in FORMS.items():
        paths = str(made / "float.onnx"), str(made / f"{name}.onnx")
        if options is None:
            quantization.quantize_dynamic(*paths, weight_type=QuantType.QUInt8)
        else:
            quantization.quantize_static(*paths, _Images(), **options)
    logging.disable(logging.NOTSET)
    return made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMS)
def test_equals_onnxruntime(new_session, folder: Path, name: str):
    native = NativeModel(folder / f"{name}.onnx")
    session = new_session(folder / f"{name}.onnx", providers=["wasm"])
    for seed in (10, 11):
        (found,), (wanted,) = session.run(None, {"x": images(seed)}), native.run({"x": images(seed)})
        assert wanted.std() > 0.01
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMS)
def test_equals_onnxruntime_on_webgpu(new_session, folder: Path, name: str):
    """Within one step of the probabilities: the sums before them are floats."""
    native = NativeModel(folder / f"{name}.onnx")
    session = new_session(folder / f"{name}.onnx", providers=["webgpu", "wasm"])
    operators = session.placement().counts()
    assert operators["wasm"] == 0
    for seed in (10, 11):
        (found,), (wanted,) = session.run(None, {"x": images(seed)}), native.run({"x": images(seed)})
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1 / 255 + 1e-6)


@pytest.mark.skipif(not WEBNN.exists(), reason="no Chromium with WebNN is there (make webnn)")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMS)
def test_equals_onnxruntime_on_webnn(folder: Path, name: str):
    """Within two steps of the probabilities: the browser rounds halves differently."""
    native = NativeModel(folder / f"{name}.onnx")
    with InferenceSession(folder / f"{name}.onnx", providers=["webnn"], browser=str(WEBNN)) as session:
        operators = [node.op_type for node in session.placement().nodes]
        assert ("QLinearConv" in operators) is (name not in ("qdq-all-unsigned", "qdq-16-bits", "dynamic"))
        for seed in (10, 11):
            (found,), (wanted,) = session.run(None, {"x": images(seed)}), native.run({"x": images(seed)})
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2 / 255 + 1e-6)


def test_round_trips_take_no_launches_of_their_own(new_session, folder: Path):
    nodes = new_session(folder / "qdq-per-channel.onnx", providers=["webgpu", "wasm"]).placement().nodes
    operators = [node.op_type for node in nodes]
    assert not {"QuantizeLinear", "DequantizeLinear"} & set(operators)
    assert operators.count("Conv") == 6 and operators.count("FakeQuantize") <= 6
    assert "Add" not in operators  # a product's residual, with any steps


def test_operators_between_quantized_numbers_work_on_integers(new_session, folder: Path):
    nodes = new_session(folder / "qdq-unsigned.onnx", providers=["wasm"]).placement().nodes
    operators = [node.op_type for node in nodes]
    assert operators.count("QLinearConv") == 6 and "QGemm" in operators and "Conv" not in operators
    assert operators.count("QuantizeLinear") == operators.count("DequantizeLinear") == 1
    assert operators.count("Transpose") == 1  # for the image: later nodes have channels last


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
def test_small_negative_numbers_are_quantized_to_plain_zero(new_session, provider: str):
    """A division by the result shows it: integers have no -0."""
    steps = [
        numpy_helper.from_array(np.array(value), name) for value, name in ((np.float32(0.1), "s"), (np.int8(3), "z"))
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Reciprocal", ["d"], ["r"]),
        helper.make_node("Clip", ["r", "least", "most"], ["y"]),
    ]
    bounds = [numpy_helper.from_array(np.float32(value), name) for value, name in ((-99, "least"), (99, "most"))]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph(nodes, "zeros", infos[:1], infos[1:], [*steps, *bounds])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = new_session(model, providers=["webgpu", "wasm"] if provider == "webgpu" else ["wasm"])
    (found,) = session.run(None, {"x": np.array([-0.04, 0.04, -0.2, 0.3], np.float32)})
    np.testing.assert_allclose(found, [99, 99, -5, 1 / 0.3], rtol=1e-5)


def test_dynamically_quantized_products_end_in_floats(new_session, tmp_path: Path):
    """Queries, keys and values share the row's quantization; Gelu ends the product before it."""
    model = bert(layers=1, width=64, heads=2)
    onnx.save(model, tmp_path / "float.onnx")
    quantization.quantize_dynamic(str(tmp_path / "float.onnx"), str(tmp_path / "q8.onnx"))
    session = new_session(tmp_path / "q8.onnx", providers=["wasm"])
    operators = [node.op_type for node in session.placement().nodes]
    assert operators.count("MatMulIntegerToFloat") == 6 and operators.count("DynamicQuantizeLinear") == 4
    assert not {"MatMulInteger", "Gelu", "Erf", "Transpose"} & set(operators)
    native = NativeModel(tmp_path / "q8.onnx")
    rng = np.random.default_rng(1)
    feeds = {"input_ids": rng.integers(0, 50, (2, 12)), "attention_mask": np.ones((2, 12), np.int64)}
    (found,), (wanted,) = session.run(None, feeds), native.run(feeds)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-2 * np.abs(wanted).max())


def test_dynamically_quantized_products_are_of_floats_on_webgpu(new_session, folder: Path):
    """Convolutions and products; values rounded between them have a kernel of their own."""
    nodes = new_session(folder / "dynamic.onnx", providers=["webgpu", "wasm"]).placement().nodes
    operators = [node.op_type for node in nodes]
    assert not {"ConvInteger", "MatMulInteger", "DynamicQuantizeLinear", "Cast"} & set(operators)
    assert operators.count("Conv") == 6 and operators.count("DynamicFakeQuantize") == 6


def test_dynamically_quantized_products_read_bytes_on_webgpu(new_session, tmp_path: Path):
    """Queries, keys and values are one product; each has its rows' rounding, and Gelu ends the previous one."""
    onnx.save(bert(layers=1, width=64, heads=2), tmp_path / "float.onnx")
    quantization.quantize_dynamic(str(tmp_path / "float.onnx"), str(tmp_path / "q8.onnx"), per_channel=True)
    session = new_session(tmp_path / "q8.onnx", providers=["webgpu", "wasm"])
    operators = [node.op_type for node in session.placement().nodes]
    assert operators.count("MatMulNBits") == 4
    assert not {"MatMul", "DynamicFakeQuantize", "Gelu"} & set(operators)
    native = NativeModel(tmp_path / "q8.onnx")
    rng = np.random.default_rng(1)
    feeds = {"input_ids": rng.integers(0, 50, (2, 12)), "attention_mask": np.ones((2, 12), np.int64)}
    (found,), (wanted,) = session.run(None, feeds), native.run(feeds)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-2 * np.abs(wanted).max())


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
def test_saved_graphs_of_dynamic_products_run_natively(new_session, tmp_path: Path, provider: str):
    """Including the activations that end products."""
    onnx.save(bert(layers=1, width=64, heads=2), tmp_path / "float.onnx")
    quantization.quantize_dynamic(str(tmp_path / "float.onnx"), str(tmp_path / "q8.onnx"))
    options = SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    providers = ["wasm"] if provider == "wasm" else ["webgpu", "wasm"]
    session = new_session(tmp_path / "q8.onnx", options, providers)
    rng = np.random.default_rng(1)
    feeds = {"input_ids": rng.integers(0, 50, (2, 12)), "attention_mask": np.ones((2, 12), np.int64)}
    (found,), (wanted,) = NativeModel(tmp_path / "saved.onnx").run(feeds), session.run(None, feeds)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-2 * np.abs(wanted).max())

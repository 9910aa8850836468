"""WebNN's operators in forms that ONNX's cases lack: each against native onnxruntime, and none on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx import NodeProto, helper, numpy_helper

import py_ort

sys.path[:0] = [str(Path(__file__).parents[1] / "ops")]

from case import Case  # noqa: E402
from tables import SHARED  # noqa: E402

CHROMIUM = Path(__file__).parents[2] / "build/webnn/chromium"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium with WebNN is there (make webnn)"),
]
RNG = np.random.default_rng(7)
STATE = RNG.bit_generator.state
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def drawn_alike() -> None:
    """Draw the same for a test, whatever tests came before it."""
    RNG.bit_generator.state = STATE


def floats(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def integers(dtype: type, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return RNG.integers(max(limits.min, -1000), min(limits.max, 1000), shape, endpoint=True).astype(dtype)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes: Sequence[NodeProto], fed: dict[str, Array], kept: dict[str, Array], outputs: str) -> bytes:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in fed.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    constants = [numpy_helper.from_array(array, name) for name, array in kept.items()]
    graph = helper.make_graph(nodes, "net", inputs, results, constants)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def strict_session(made: bytes) -> py_ort.InferenceSession:
    options = py_ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return py_ort.InferenceSession(made, options, providers=["webnn"], browser=str(CHROMIUM))


def compare(
    nodes: Sequence[NodeProto], fed: dict[str, Array], kept: dict[str, Array] | None = None, outputs: str = "y"
) -> None:
    made = model(nodes, fed, kept or {}, outputs)
    with strict_session(made) as session:
        got = session.run(None, fed)
    for a, b in zip(got, onnxruntime.InferenceSession(made).run(None, fed), strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind == "f":
            assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        else:
            assert_array_equal(a, b)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax", "ArgMax"])
def test_axes_between_others(op: str, axis: int) -> None:
    """Browsers insert and remove transposes around images; an operator's result is another's operand."""
    ends = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    nodes = [
        node("Resize", "x s", "a", **ends),
        node(op, "a", "b", axis=axis),
        node("Cast", "b", "c", to=1),
        node("Resize", "c  s", **ends),
    ]
    for resize in nodes[::3]:
        resize.input.insert(1, "")
    compare(nodes, {"x": floats(2, 5, 6, 7)}, {"s": np.array([1, 1, 2, 2], np.float32)})


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Mod", "Equal"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_integers(op: str, dtype: type) -> None:
    b = integers(dtype, 3, 50)
    compare([node(op, "a b")], {"a": integers(dtype, 2, 3, 50), "b": np.where(b == 0, dtype(3), b)})


@pytest.mark.parametrize("depth", [5, 300, 5000])
def test_products_of_integers(depth: int) -> None:
    fed = {"a": integers(np.uint8, 3, depth), "b": integers(np.int8, depth, 4)}
    compare([node("MatMulInteger", "a b s t")], fed, {"s": np.array(131, np.uint8), "t": np.array(-7, np.int8)})


QUANTIZED: dict[str, tuple[tuple[int, ...], dict[str, int]]] = {
    "all": ((), {}),
    "axis": ((4,), {"axis": 1}),
    "blocks": ((3, 4, 5), {"axis": 2, "block_size": 10}),
    "a part of a block": ((3, 4, 4), {"axis": 2, "block_size": 15}),
}


@pytest.mark.parametrize("form", QUANTIZED)
def test_steps(form: str) -> None:
    shape, attributes = QUANTIZED[form]
    fed = {"x": floats(3, 4, 50), "s": np.asarray(np.abs(floats(*shape)) + np.float32(0.01))}
    nodes = [node("QuantizeLinear", "x s", "q", **attributes), node("DequantizeLinear", "q s", "y", **attributes)]
    compare(nodes, fed, outputs="q y")


def test_steps_of_an_image() -> None:
    resize = node("Resize", "x k", "a", mode="linear")
    resize.input.insert(1, "")
    kept = {"k": np.array([1, 1, 2, 2], np.float32), "s": np.array(0.1, np.float32), "z": np.array(9, np.uint8)}
    compare([resize, node("QuantizeLinear", "a s z")], {"x": floats(2, 5, 6, 7)}, kept)


def test_steps_of_zeros() -> None:
    compare([node("DynamicQuantizeLinear", "x", "q s z")], {"x": np.zeros((3, 4), np.float32)}, outputs="q s z")


@pytest.mark.parametrize("shape", [(7, 4, 5), (2, 2, 1, 4, 5), (4,)])
def test_products(shape: tuple[int, ...]) -> None:
    compare([node("MatMul", "a b")], {"a": floats(3, 4) if len(shape) > 1 else floats(2, 3, 4), "b": floats(*shape)})


@pytest.mark.parametrize("equation", ["bqhd,bkhd->bhqk", "...ii->...i", "ab,bc,cd->ad", "ba,ca"])
def test_einsum(equation: str) -> None:
    sizes = {"a": 2, "b": 3, "c": 2, "d": 4, "h": 2, "i": 3, "k": 5, "q": 6}
    terms = [term.replace("...", "a") for term in equation.split("->")[0].split(",")]
    fed = {f"x{i}": floats(*(sizes[label] for label in term)) for i, term in enumerate(terms)}
    compare([node("Einsum", " ".join(fed), equation=equation)], fed)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_recurrent(op: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    kept = {"w": floats(2, gates * 4, 3), "r": floats(2, gates * 4, 4), "b": floats(2, gates * 8)}
    fed = {"x": floats(5, 2, 3), "h": floats(2, 2, 4)}
    recurrent = node(op, "x w r b", "y z", hidden_size=4, direction="bidirectional")
    recurrent.input.extend(["", "h"])
    compare([recurrent], fed, kept, "y z")


NORMALIZATIONS: dict[str, Callable[[], NodeProto]] = {
    "statistics": lambda: node("LayerNormalization", "x s t", "y m i", axis=-1),
    "skip": lambda: node("SkipLayerNormalization", "x x s t", domain="com.microsoft"),
    "without a mean": lambda: node("SimplifiedLayerNormalization", "x s", axis=-1),
}


@pytest.mark.parametrize("form", NORMALIZATIONS)
def test_normalizations(form: str) -> None:
    made = NORMALIZATIONS[form]()
    compare([made], {"x": floats(2, 3, 8) + 100}, {"s": floats(8), "t": floats(8)}, " ".join(made.output))


def test_indices_of_many_axes() -> None:
    compare([node("Gather", "x i", axis=1)], {"x": floats(2, 5), "i": RNG.integers(0, 5, (1, 2, 1, 2, 2))})


def test_large_numbers() -> None:
    big = np.array([[1000.0, 999, -1000], [-1000, -2000, -1000.5]], np.float32)
    nodes = [node("ReduceLogSumExp", "x a", "l"), node("LogSoftmax", "x", "s"), node("Asinh", "x", "h")]
    compare(nodes, {"x": big}, {"a": np.array([1])}, "l s h")


ATTENTIONS = [
    case
    for table in ("attention/microsoft", "attention/standard")
    for case in SHARED[table]
    if case.op in ("RotaryEmbedding", "MultiHeadAttention", "GroupQueryAttention", "Attention")
    and not {"cache", "cache-empty", "beams"}.intersection([case.name])
]


@pytest.mark.parametrize("constants", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("case", ATTENTIONS, ids=[case.id for case in ATTENTIONS])
def test_attentions(case: Case, constants: bool) -> None:
    """The tables of tests/ops, once with all inputs as feeds and once with all but the first as constants."""
    arrays = case.arrays()
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(arrays)]
    given = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
    kept = {name: array for name, array in given.items() if constants and name != "x0"}
    outputs = [f"y{i}" for i in range(case.outputs)]
    made = helper.make_node(case.op, names, outputs, domain=case.domain, **case.attributes)
    fed = {name: array for name, array in given.items() if name not in kept}
    with strict_session(model([made], fed, kept, " ".join(outputs))) as session:
        for a, b in zip(session.run(None, fed), case.expectation(arrays), strict=True):
            assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("equation", ["ab,bc,ca->", "ab,bc,ca->ac"])
def test_constants_whose_axes_change_places(equation: str) -> None:
    """A browser that transposes a constant and then reshapes it must not use its earlier axes."""
    fed, kept = {"x": floats(2, 3)}, {"b": floats(3, 4), "c": floats(4, 2)}
    compare([node("Einsum", "x b c", equation=equation)], fed, kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_softplus_of_large_numbers(dtype: type) -> None:
    compare([node("Softplus", "x")], {"x": np.array([-100, -20, -1e-4, 0, 3, 88, 89, 200, 60000], dtype)})


def test_squeeze_of_all_axes() -> None:
    compare([node("Squeeze", "x axes")], {"x": floats(1, 3, 1)}, {"axes": np.array([], np.int64)})

"""Narrow elements on the GPU: models have the size of their file there, and onnxruntime's results."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from array_models import model_of
from native import native_session
from onnx import helper
from unsigned_weights import unsigned_weights

RNG = np.random.default_rng(5)
#: A model and its feeds.
Model = tuple[onnx.ModelProto, dict[str, np.ndarray]]


class Graph:
    """Collects nodes and weights."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def add(self, op: str, *inputs: str | np.ndarray, domain: str = "", **attributes: Any) -> str:
        """Add a node and return its output's name; arrays become weights."""
        names = [self._named(value) for value in inputs]
        output = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [output], domain=domain, name=output, **attributes))
        return output

    def _named(self, value: str | np.ndarray) -> str:
        if isinstance(value, str):
            return value
        self.weights[f"w{len(self.weights)}"] = value
        return f"w{len(self.weights) - 1}"

    def model(self, output: str, sizes: Sequence[int | str], **feeds: np.ndarray) -> Model:
        """Return the model and its feeds; `sizes` are those of its only input."""
        return model_of(self.nodes, feeds, [output], self.weights, sizes=dict.fromkeys(feeds, sizes)), feeds


def halves(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float16)


def bytes_of(dtype: type, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape, dtype)


def single(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def half_network() -> Model:
    """Convolutions: dense, in fours of channels and not, depthwise, and a dense layer."""
    g = Graph()
    x = g.add("Relu", g.add("Conv", "x", halves(32, 3, 3, 3, scale=0.2), halves(32), pads=[1, 1, 1, 1]))
    deep = g.add("Conv", x, halves(32, 1, 3, 3, scale=0.3), halves(32), group=32, pads=[1, 1, 1, 1])
    x = g.add("Add", g.add("Sigmoid", g.add("Conv", deep, halves(32, 32, 1, 1, scale=0.15))), x)
    x = g.add(
        "Conv", g.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), halves(21, 32, 3, 3, scale=0.06), halves(21)
    )
    y = g.add(
        "Softmax", g.add("Gemm", g.add("Flatten", g.add("GlobalAveragePool", x)), halves(9, 21), halves(9), transB=1)
    )
    return g.model(y, ["n", 3, 17, 17], x=halves(2, 3, 17, 17))


def half_block() -> Model:
    """A block of BERT, from its tokens on."""
    g, width, heads = Graph(), 64, 4
    x = g.add("LayerNormalization", g.add("Gather", halves(300, width), "ids"), halves(width), halves(width))

    def linear(x: str, rows: int, columns: int) -> str:
        return g.add("Add", g.add("MatMul", x, halves(rows, columns, scale=rows**-0.5)), halves(columns, scale=0.1))

    def split(x: str, perm: list[int]) -> str:
        return g.add("Transpose", g.add("Reshape", x, np.array([0, 0, heads, width // heads])), perm=perm)

    q, k, v = (split(linear(x, width, width), perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = g.add("Softmax", g.add("Mul", g.add("MatMul", q, k), np.array(0.25, np.float16)), axis=-1)
    seen = g.add("Reshape", g.add("Transpose", g.add("MatMul", scores, v), perm=[0, 2, 1, 3]), np.array([0, 0, width]))
    x = g.add("LayerNormalization", g.add("Add", linear(seen, width, width), x), halves(width), halves(width))
    y = linear(g.add("Gelu", linear(x, width, 128)), 128, width)
    return g.model(y, ["n", "s"], ids=RNG.integers(0, 300, (2, 13)))


def integer_network() -> Model:
    """Convolutions, a sum and a product on bytes."""
    g = Graph()
    scale, zero = single(0.05), np.array(120, np.uint8)
    x = g.add("QuantizeLinear", "x", scale, zero)
    for columns, depth in ((24, 3), (24, 24)):
        per_channel = (RNG.random(columns) * 0.004 + 0.002).astype(np.float32)
        weights = [bytes_of(np.int8, columns, depth, 3, 3), per_channel, np.zeros(columns, np.int8)]
        ends = scale, zero, RNG.integers(-99, 99, columns, np.int32)
        x = g.add("QLinearConv", x, scale, zero, *weights, *ends, pads=[1, 1, 1, 1])
    x = g.add("Flatten", g.add("MaxPool", x, kernel_shape=[3, 3], strides=[3, 3]))
    product = [bytes_of(np.uint8, 216, 50), single(0.003), np.array(128, np.uint8), single(0.4), zero]
    y = g.add("DequantizeLinear", g.add("QLinearMatMul", x, scale, zero, *product), single(0.4), zero)
    return g.model(y, ["n", 3, 9, 9], x=RNG.standard_normal((2, 3, 9, 9)).astype(np.float32))


def dequantized_weights(dtype: str) -> Model:
    """Bytes with a scale for each column, or 4 bits in blocks, dequantized in the model; and a bias."""
    g, k, n = Graph(), 512, 520
    if dtype == "int8":
        scales = (RNG.random(n) * 0.002).astype(np.float32)
        weights = g.add("DequantizeLinear", bytes_of(np.int8, k, n), scales, bytes_of(np.int8, n), axis=1)
    else:
        packed = RNG.integers(0, 16, (k, n)).astype(ml_dtypes.uint4)
        scales = (RNG.random((k // 32, n)) * 0.02).astype(np.float32)
        weights = g.add("DequantizeLinear", packed, scales, axis=0, block_size=32)
    y = g.add("Add", g.add("MatMul", "x", weights), RNG.standard_normal(n).astype(np.float32))
    return g.model(y, ["n", k], x=RNG.standard_normal((5, k)).astype(np.float32))


def blocks(bits: int, rows: int) -> Model:
    """A table and a product of `bits` bits, in blocks of 32."""
    g, width = Graph(), 128
    table, scales = (
        bytes_of(np.uint8, 200, width * bits // 8),
        (RNG.random((200, width // 32)) * 0.1).astype(np.float32),
    )
    ours: dict[str, Any] = {"domain": "com.microsoft", "bits": bits, "block_size": 32}
    x = g.add("GatherBlockQuantized", table, "ids", scales, gather_axis=0, quantize_axis=1, **ours)
    weights = [bytes_of(np.uint8, 90, width // 32, 4 * bits), (RNG.random((90, width // 32)) * 0.01).astype(np.float32)]
    y = g.add("MatMulNBits", x, *weights, K=width, N=90, **ours)
    return g.model(y, ["n"], ids=RNG.integers(0, 200, rows))


def byte_table() -> Model:
    """Rows of odd length out of a table of bytes."""
    g = Graph()
    y = g.add("Gather", bytes_of(np.uint8, 500, 37), "ids")
    return g.model(y, ["n"], ids=RNG.integers(-500, 500, 23))


#: The model, and the permitted error of its results.
CASES: dict[str, tuple[Callable[[], Model], float]] = {
    "float16-network": (half_network, 4e-3),
    "float16-block": (half_block, 2e-2),
    "integer-network": (integer_network, 0.0),
    "dequantized-int8": (lambda: dequantized_weights("int8"), 1e-4),
    "dequantized-uint4": (lambda: dequantized_weights("uint4"), 1e-4),
    "4-bits-few-rows": (lambda: blocks(4, 3), 1e-4),
    "4-bits-many-rows": (lambda: blocks(4, 40), 1e-4),
    "8-bits-few-rows": (lambda: blocks(8, 3), 1e-4),
    "byte-table": (byte_table, 0.0),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_take_what_they_take_in_the_file(new_session, name):
    make, tolerance = CASES[name]
    model, feeds = make()
    session = new_session(model, providers=["webgpu"])
    assert session.placement().counts()["wasm"] == 0, str(session.placement())
    # onnxruntime's own optimizations round more.
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = unsigned_weights(model, feeds)
    (wanted,) = native_session(source, plain).run(None, feeds)
    for _ in range(2):
        (found,) = session.run(None, feeds)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)
    told = session.memory()["webgpu"]["weights"]
    assert 0.5 * model.ByteSize() < told < 1.05 * model.ByteSize()


def test_what_lies_between_nodes_is_packed(new_session):
    """Half the memory of the same network in float32."""
    arenas = []
    for dtype in (np.float16, np.float32):
        g = Graph()
        x = "x"
        for _ in range(3):
            x = g.add("Conv", x, np.full((16, 16, 1, 1), 0.05, dtype))
            x = g.add("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        model, feeds = g.model(x, [1, 16, 32, 32], x=np.ones((1, 16, 32, 32), dtype))
        session = new_session(model, providers=["webgpu"])
        session.run(None, feeds)
        arenas.append(session.memory()["webgpu"]["arena"])
    assert arenas[0] == pytest.approx(arenas[1] / 2, rel=0.1)

"""Narrow elements on the GPU: models have the size of their file there, and onnxruntime's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import small_models
from native import native_session
from onnx import TensorProto, helper, numpy_helper
from unsigned_weights import unsigned_weights

RNG = np.random.default_rng(5)


class Graph:
    """Collects nodes and weights."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}
        self.tensors: list[Any] = []

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

    def model(self, inputs: Sequence[Any], output: str, dtype: int, rank: int) -> bytes:
        """Return it with an output of this number of axes of unknown size."""
        tensors = [*self.tensors, *(numpy_helper.from_array(value, name) for name, value in self.weights.items())]
        made = helper.make_tensor_value_info(output, dtype, [None] * rank)
        return small_models.model(self.nodes, inputs, [made], tensors, opset=21, domains=["com.microsoft"])


def halves(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float16)


def bytes_of(dtype: type, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape, dtype)


def single(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def half_network() -> tuple[bytes, dict[str, np.ndarray]]:
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
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["n", 3, 17, 17])]
    return g.model(inputs, y, TensorProto.FLOAT16, 2), {"x": halves(2, 3, 17, 17)}


def half_block() -> tuple[bytes, dict[str, np.ndarray]]:
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
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", "s"])]
    return g.model(inputs, y, TensorProto.FLOAT16, 3), {"ids": RNG.integers(0, 300, (2, 13))}


def integer_network() -> tuple[bytes, dict[str, np.ndarray]]:
    """Convolutions, a sum and a product on bytes."""
    g = Graph()
    scale, zero = single(0.05), np.array(120, np.uint8)
    x = g.add("QuantizeLinear", "x", scale, zero)
    for columns, depth in ((24, 3), (24, 24)):
        per_channel = (RNG.random(columns) * 0.004 + 0.002).astype(np.float32)
        weights = [bytes_of(np.int8, columns, depth, 3, 3), per_channel, np.zeros(columns, np.int8)]
        x = g.add(
            "QLinearConv",
            x,
            scale,
            zero,
            *weights,
            scale,
            zero,
            RNG.integers(-99, 99, columns, np.int32),
            pads=[1, 1, 1, 1],
        )
    x = g.add("Flatten", g.add("MaxPool", x, kernel_shape=[3, 3], strides=[3, 3]))
    product = [bytes_of(np.uint8, 216, 50), single(0.003), np.array(128, np.uint8), single(0.4), zero]
    y = g.add("DequantizeLinear", g.add("QLinearMatMul", x, scale, zero, *product), single(0.4), zero)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 9, 9])]
    return g.model(inputs, y, TensorProto.FLOAT, 2), {"x": RNG.standard_normal((2, 3, 9, 9)).astype(np.float32)}


def dequantized_weights(dtype: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """Bytes with a scale for each column, or 4 bits in blocks, dequantized in the model; and a bias."""
    g, k, n = Graph(), 512, 520
    if dtype == TensorProto.INT8:
        scales = (RNG.random(n) * 0.002).astype(np.float32)
        weights = g.add("DequantizeLinear", bytes_of(np.int8, k, n), scales, bytes_of(np.int8, n), axis=1)
    else:
        g.tensors.append(helper.make_tensor("w", dtype, [k, n], RNG.integers(0, 16, k * n)))
        scales = (RNG.random((k // 32, n)) * 0.02).astype(np.float32)
        weights = g.add("DequantizeLinear", "w", scales, axis=0, block_size=32)
    y = g.add("Add", g.add("MatMul", "x", weights), RNG.standard_normal(n).astype(np.float32))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", k])]
    return g.model(inputs, y, TensorProto.FLOAT, 2), {"x": RNG.standard_normal((5, k)).astype(np.float32)}


def blocks(bits: int, rows: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """A table and a product of `bits` bits, in blocks of 32."""
    g, width = Graph(), 128
    table = [
        bytes_of(np.uint8, 200, width * bits // 8),
        "ids",
        (RNG.random((200, width // 32)) * 0.1).astype(np.float32),
    ]
    x = g.add(
        "GatherBlockQuantized", *table, domain="com.microsoft", bits=bits, block_size=32, gather_axis=0, quantize_axis=1
    )
    weights = [bytes_of(np.uint8, 90, width // 32, 4 * bits), (RNG.random((90, width // 32)) * 0.01).astype(np.float32)]
    y = g.add("MatMulNBits", x, *weights, domain="com.microsoft", K=width, N=90, bits=bits, block_size=32)
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])]
    return g.model(inputs, y, TensorProto.FLOAT, 2), {"ids": RNG.integers(0, 200, rows)}


def byte_table() -> tuple[bytes, dict[str, np.ndarray]]:
    """Rows of odd length out of a table of bytes."""
    g = Graph()
    y = g.add("Gather", bytes_of(np.uint8, 500, 37), "ids")
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])]
    return g.model(inputs, y, TensorProto.UINT8, 2), {"ids": RNG.integers(-500, 500, 23)}


Case = tuple[Callable[[], tuple[bytes, dict[str, np.ndarray]]], float]
#: The model, and the permitted error of its results.
CASES: dict[str, Case] = {
    "float16-network": (half_network, 4e-3),
    "float16-block": (half_block, 2e-2),
    "integer-network": (integer_network, 0.0),
    "dequantized-int8": (lambda: dequantized_weights(TensorProto.INT8), 1e-4),
    "dequantized-uint4": (lambda: dequantized_weights(TensorProto.UINT4), 1e-4),
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
    source = unsigned_weights(onnx.load_from_string(model), feeds).SerializeToString()
    (wanted,) = native_session(source, plain).run(None, feeds)
    for _ in range(2):
        (found,) = session.run(None, feeds)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance)
    told = session.memory()["webgpu"]["weights"]
    assert 0.5 * len(model) < told < 1.05 * len(model)


def test_what_lies_between_nodes_is_packed(new_session):
    """Half the memory of the same network in float32."""
    arenas = []
    for dtype, onnx_dtype in ((np.float16, TensorProto.FLOAT16), (np.float32, TensorProto.FLOAT)):
        g = Graph()
        x = "x"
        for _ in range(3):
            x = g.add("Conv", x, np.full((16, 16, 1, 1), 0.05, dtype))
            x = g.add("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        value = helper.make_tensor_value_info("x", onnx_dtype, [1, 16, 32, 32])
        session = new_session(g.model([value], x, onnx_dtype, 4), providers=["webgpu"])
        session.run(None, {"x": np.ones((1, 16, 32, 32), dtype)})
        arenas.append(session.memory()["webgpu"]["arena"])
    assert arenas[0] == pytest.approx(arenas[1] / 2, rel=0.1)

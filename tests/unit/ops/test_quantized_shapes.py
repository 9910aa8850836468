"""Inferred shapes and types of com.microsoft's operators on quantized tensors are those of native onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from graphs import parse
from native import native_session

from py_ort.compiler import compile_model
from py_ort.ir.infer import infer_graph

_RNG = np.random.default_rng(3)
_CONSTANTS = {
    **{"s": np.float32(0.1), "z": np.uint8(7), "i": np.int8(0), "steps": np.full(4, 0.1, np.float32)},
    **{"w": _RNG.integers(0, 255, (6, 4)).astype(np.uint8), "c": np.array([True, False, True])},
    **{"table": _RNG.integers(0, 255, (9, 16)).astype(np.uint8), "at": np.array([[1, 8]])},
    **{"block_steps": np.ones((9, 2), np.float32), "packed": np.full(64, 3, np.uint8), "most": np.ones(8, np.float32)},
    **{"floats": np.ones((9, 5), np.float32), "row": np.ones(5, np.float32)},
}
_MEAN, _POOL = ("uint8", (2, 3, 4, 5)), ("uint8", (2, 3, 7, 5))
# id: the type of x, its sizes, the node that makes y
CASES = {
    "sigmoid": ("uint8", (2, 3), "com.microsoft.QLinearSigmoid(x, s, z, s, z)"),
    "a row is added": ("uint8", (2, 5, 1, 4), "com.microsoft.QLinearAdd(x, s, z, w, s, z, s, z)"),
    "a smaller one first": ("uint8", (4,), "com.microsoft.QLinearMul(x, s, z, w, s, z, s, z)"),
    "concat": ("uint8", (2, 4), "com.microsoft.QLinearConcat<axis=0>(s, z, x, s, z, w, s, z, x, s, z)"),
    "where": ("uint8", (2, 3), "com.microsoft.QLinearWhere(c, x, s, z, x, s, z, s, z)"),
    "the mean of an image": (*_MEAN, "com.microsoft.QLinearGlobalAveragePool<channels_last=0>(x, s, z, s, z)"),
    "the mean of an image, channels last": (
        *_MEAN,
        "com.microsoft.QLinearGlobalAveragePool<channels_last=1>(x, s, z, s, z)",
    ),
    "a pool": (
        *_POOL,
        "com.microsoft.QLinearAveragePool<kernel_shape=[3,2], strides=[2,1], pads=[1,0,1,0]>(x, s, z, s, z)",
    ),
    "a pool, channels last": (
        *_POOL,
        "com.microsoft.QLinearAveragePool<kernel_shape=[3,2], channels_last=1, ceil_mode=1>(x, s, z, s, z)",
    ),
    "a product of floats": ("float", (2, 5, 6), "com.microsoft.DynamicQuantizeMatMul(x, w, steps, z)"),
    "a product of integers": ("uint8", (5, 6), "com.microsoft.MatMulIntegerToFloat(x, w, s, steps, z, z)"),
    "a product of integers that stay": (
        "uint8",
        (6, 5),
        "com.microsoft.QGemm<transA=1>(x, s, z, w, s, z, , s, z)",
    ),
    "a product of blocks": (
        "float",
        (3, 2, 16),
        "com.microsoft.MatMulBnb4<K=16, N=8, block_size=16, quant_type=1>(x, packed, most)",
    ),
    "a product of blocks as they lie": (
        "float",
        (3, 2, 8),
        "com.microsoft.MatMulBnb4<K=16, N=8, block_size=16, quant_type=1, transB=0>(x, packed, most)",
    ),
    "rows of a table": (
        "int64",
        (2, 3),
        "com.microsoft.GatherBlockQuantized<block_size=16, quantize_axis=1, bits=4>(table, x, block_steps)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_type_and_sizes(case: str):
    kind, sizes, node = CASES[case]
    _compare(f"g ({kind}[{','.join(map(str, sizes))}] x) => (y) {{ y = {node} }}", kind, sizes)


def test_embeddings():
    node = "com.microsoft.EmbedLayerNormalization(x, , floats, floats, , row, row)"
    _compare(f"g (int32[2,3] x) => (y, m) {{ y, m = {node} }}", "int32", (2, 3))


def _compare(text: str, kind: str, sizes: tuple[int, ...]) -> None:
    model = parse(text, {name: value for name, value in _CONSTANTS.items() if name in text}, opset=17)
    dtype = {"float": "float32"}.get(kind, kind)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    native = native_session(model, options)
    loaded = ir.serde.deserialize_model(model)
    infer_graph(loaded.graph)
    outputs = native.run(None, {"x": _RNG.integers(0, 9, sizes).astype(dtype)})
    for found, wanted in zip(loaded.graph.outputs, outputs, strict=True):
        assert found.shape is not None and tuple(found.shape) == wanted.shape
        assert found.dtype is not None and found.dtype.numpy() == wanted.dtype


def test_channels_last_behind_a_mean():
    """A network that onnxruntime saved after it optimized it has no types between its nodes."""
    text = """g (uint8[1,6,6,4] x) => (uint8[1,1,1,6] y) {
        m = com.microsoft.QLinearGlobalAveragePool<channels_last=1>(x, s, z, s, z)
        y = com.microsoft.QLinearConv<channels_last=1>(m, s, z, k, s, i, s, z)
    }"""
    weights = _RNG.integers(-128, 127, (6, 4, 1, 1)).astype(np.int8)
    model = parse(text, {**{name: _CONSTANTS[name] for name in ("s", "z", "i")}, "k": weights}, opset=17)
    operators = [node.op_type for node in compile_model(model.SerializeToString(), providers=["wasm"]).placement.nodes]
    assert operators == ["QLinearGlobalAveragePool", "QLinearConv"]

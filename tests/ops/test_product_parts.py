"""Parts of a product's k that a normalization adds up: both kernels, and the pass that joins them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import py_ort

pytestmark = pytest.mark.browser
RNG = np.random.default_rng(17)


def _floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("tile, parts", [("32x32x16_two_slices_4_parts_3", 3), ("32x32x32", 1)])
def test_products_leave_their_parts(
    kernel_page: Any, tile: str, parts: int, transposed: bool, dtype: type[np.floating]
) -> None:
    a, b = _floats(2, 9, 304).astype(dtype), _floats(304, 36).astype(dtype)
    inputs, attributes = [a, b.T.copy() if transposed else b], {"y_parts": 1, **({"transB": 1} if transposed else {})}
    device = {"hardware": True, "traits": {"tiles": {"*": tile}}}
    (made,) = kernel_page.run("MatMul", inputs, attributes, **device).outputs
    assert (made.shape, made.dtype) == ((parts, 2, 9, 36), np.float32)
    np.testing.assert_allclose(made.sum(axis=0), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", [{"hardware": True}, {}])
def test_products_are_whole_where_parts_do_not_pay(kernel_page: Any, device: dict[str, Any]) -> None:
    for a, b in ((_floats(3, 64), _floats(64, 8)), (_floats(40, 5), _floats(5, 6)), (_floats(0, 8), _floats(8, 4))):
        (made,) = kernel_page.run("MatMul", [a, b], {"y_parts": 1}, **device).outputs
        np.testing.assert_allclose(made, (a @ b)[None], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("rows, width", [((2, 5), 36), ((7,), 1024), ((2, 3), 6)])
@pytest.mark.parametrize("device", [{"hardware": True}, {}])
def test_normalizations_add_parts_up(
    kernel_page: Any,
    device: dict[str, Any],
    rows: tuple[int, ...],
    width: int,
    parts: int,
    simplified: bool,
    dtype: type[np.floating],
) -> None:
    x, skip = _floats(parts, *rows, width), _floats(*rows[1:], width).astype(dtype)
    scale, shift, bias = (_floats(width).astype(dtype) for _ in range(3))
    total = x.sum(axis=0).astype(np.float64) + skip + bias
    kind = "SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization"
    inputs = [x, skip, scale, bias] if simplified else [x, skip, scale, shift, bias]
    centered = total if simplified else total - total.mean(axis=-1, keepdims=True)
    wanted = centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5) * scale
    result = kernel_page.run(
        kind,
        inputs,
        {"x_parts": 1, "epsilon": 1e-5},
        domain="com.microsoft",
        outputs=[True, False, False, True],
        **device,
    )
    made = [each for each in result.outputs if each is not None]
    assert [each.dtype for each in made] == [dtype] * 2
    step = {np.float32: 1e-4, np.float16: 4e-3}[dtype]
    np.testing.assert_allclose(made[0], wanted + (0 if simplified else shift), rtol=1e-3, atol=step)
    np.testing.assert_allclose(made[-1], total, rtol=step, atol=step)


def _model(residual_first: bool, dtype: type[np.floating], width: int = 16, depth: int = 2048) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = {"b": _floats(depth, width) / 40, "bias": _floats(width), "g": _floats(width), "h": _floats(width)}
    order = ["r", "biased"] if residual_first else ["biased", "r"]
    nodes = [
        helper.make_node("MatMul", ["a", "b"], ["p"], "product"),
        helper.make_node("Add", ["p", "bias"], ["biased"]),
        helper.make_node("Add", order, ["total"]),
        helper.make_node("LayerNormalization", ["total", "g", "h"], ["n"], axis=-1),
        helper.make_node("Neg", ["total"], ["also"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [value("a", kind, ["batch", 3, depth]), value("r", kind, ["batch", 3, width])],
        [value("n", kind, None), value("also", kind, None)],
        [numpy_helper.from_array(array.astype(dtype), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("residual_first", [False, True])
def test_results_are_native_ones(residual_first: bool, dtype: type[np.floating]) -> None:
    model = _model(residual_first, dtype)
    near = {np.float32: 1e-4, np.float16: 1e-2}[dtype]
    native = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    with py_ort.InferenceSession(model.SerializeToString(), providers=["webgpu", "wasm"]) as session:
        assert session.placement().counts()["wasm"] == 0
        for batch in (1, 4):
            feeds = {"a": _floats(batch, 3, 2048).astype(dtype), "r": _floats(batch, 3, 16).astype(dtype)}
            for made, wanted in zip(session.run(None, feeds), native.run(None, feeds), strict=True):
                assert made.dtype == dtype
                np.testing.assert_allclose(made, wanted, rtol=10 * near, atol=near)

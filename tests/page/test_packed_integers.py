"""8-bit weights that Python packs for the CPU: every operator that reads them, compared with native onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
import small_models
from native import native_session
from onnx import TensorProto, helper, numpy_helper

from py_ort.compiler import compile_model

pytestmark = pytest.mark.browser
RNG = np.random.default_rng(11)
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
#: (type of B, its zero points: none, one, one per column)
WEIGHTS = [(np.uint8, None), (np.uint8, ()), (np.uint8, (19,)), (np.int8, ()), (np.int8, (19,))]


def numbers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return RNG.integers(0, 256, shape).astype(np.uint8).view(dtype)


def check(new_session, node, x: np.ndarray, constants: dict[str, np.ndarray], made: int, tolerance: float = 0) -> None:
    kinds = {np.dtype(np.float32): TensorProto.FLOAT, **{np.dtype(key): kind for key, kind in TYPES.items()}}
    model = small_models.model(
        [node],
        [helper.make_tensor_value_info("x", kinds[x.dtype], x.shape)],
        [helper.make_tensor_value_info("y", made, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
        opset=21,
        domains=("com.microsoft",),
    )
    placed = compile_model(model, providers=["wasm"]).model.graph
    packed = [n for n in placed if n.op_type == node.op_type]
    assert all("packed_n" in n.attributes or "weight_layout" in n.attributes for n in packed)
    (wanted,) = native_session(model).run(None, {"x": x})
    (got,) = new_session(model, providers=["wasm"]).run(None, {"x": x})
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize(
    ("op", "dtype", "zero"),
    [
        *((op, *weights) for op in ("MatMulInteger", "MatMulIntegerToFloat") for weights in WEIGHTS),
        *((op, *weights) for op in ("QLinearMatMul", "QGemm") for weights in WEIGHTS if weights[1] is not None),
    ],
    ids=str,
)
def test_products(new_session, op: str, dtype: type, zero: tuple[int, ...] | None, rows: int) -> None:
    shape = () if zero is None else zero
    constants = {
        "b": numbers((33, 19), dtype),
        "x_zero": np.uint8(77),
        "x_scale": np.float32(0.02),
        "b_scale": RNG.uniform(0.001, 0.01, shape).astype(np.float32),
        "y_scale": np.float32(0.6),
        "y_zero": np.uint8(101),
    }
    if zero is not None:
        constants["b_zero"] = numbers(zero, dtype)
    given = "b_zero" if zero is not None else ""
    inputs, domain, made = {
        "MatMulInteger": (["x", "b", "x_zero", given], "", TensorProto.INT32),
        "MatMulIntegerToFloat": (
            ["x", "b", "x_scale", "b_scale", "x_zero", given],
            "com.microsoft",
            TensorProto.FLOAT,
        ),
        "QLinearMatMul": (
            ["x", "x_scale", "x_zero", "b", "b_scale", given, "y_scale", "y_zero"],
            "",
            TensorProto.UINT8,
        ),
        "QGemm": (
            ["x", "x_scale", "x_zero", "b", "b_scale", given, "", "y_scale", "y_zero"],
            "com.microsoft",
            TensorProto.UINT8,
        ),
    }[op]
    used = {name: array for name, array in constants.items() if name in inputs}
    node = helper.make_node(op, inputs, ["y"], domain=domain)
    check(new_session, node, numbers((rows, 33), np.uint8), used, made, 1e-6 if made == TensorProto.FLOAT else 0)


@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, None), (np.uint8, (1,)), (np.int8, (1,))], ids=str)
def test_dynamic(new_session, dtype: type, zero: tuple[int, ...] | None) -> None:
    constants = {"b": numbers((33, 19), dtype), "b_scale": np.float32([0.01])}
    if zero is not None:
        constants["b_zero"] = numbers(zero, dtype)
    inputs = ["x", "b", "b_scale", *(["b_zero"] if zero is not None else [])]
    node = helper.make_node("DynamicQuantizeMatMul", inputs, ["y"], domain="com.microsoft")
    x = RNG.standard_normal((5, 33)).astype(np.float32)
    check(new_session, node, x, constants, TensorProto.FLOAT, 1e-5)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(
    ("channels", "out", "group", "kernel"),
    [(3, 19, 1, (3, 3)), (8, 12, 2, (1, 1)), (4, 8, 4, (3, 2)), (5, 9, 1, (3,)), (3, 4, 1, (2, 2, 2))],
    ids=str,
)
@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
def test_convolutions(new_session, op: str, channels: int, out: int, group: int, kernel, dtype: type) -> None:
    constants = {
        "w": numbers((out, channels // group, *kernel), dtype),
        "w_zero": numbers((), dtype),
        "w_scale": RNG.uniform(0.001, 0.01, (out,)).astype(np.float32),
        "x_zero": np.uint8(77),
        "x_scale": np.float32(0.02),
        "y_scale": np.float32(0.6),
        "y_zero": np.uint8(101),
    }
    inputs = ["x", "w", "x_zero", "w_zero"]
    if op == "QLinearConv":
        inputs = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"]
        constants["w_zero"] = np.full((out,), constants["w_zero"])
    used = {name: array for name, array in constants.items() if name in inputs}
    node = helper.make_node(op, inputs, ["y"], group=group, pads=[1] * 2 * len(kernel))
    made = TensorProto.INT32 if op == "ConvInteger" else TensorProto.UINT8
    check(new_session, node, numbers((2, channels, *(7,) * len(kernel)), np.uint8), used, made)


@pytest.mark.parametrize("condition", [True, False])
def test_weights_that_subgraphs_share(new_session, condition: bool) -> None:
    """uint8 without a zero point, which gets one in the graph that has the weights."""

    def branch(name: str):
        nodes = [
            helper.make_node("MatMulInteger", ["x", "b"], [f"{name}_sum"]),
            helper.make_node("Neg" if name == "no" else "Identity", [f"{name}_sum"], [name]),
        ]
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.INT32, None)])

    nodes = [
        helper.make_node("If", ["c"], ["i"], then_branch=branch("yes"), else_branch=branch("no")),
        helper.make_node("MatMulInteger", ["x", "b"], ["sum"]),
        helper.make_node("Add", ["i", "sum"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.UINT8, [3, 17]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
    b = numpy_helper.from_array(numbers((17, 9), np.uint8), "b")
    model = small_models.model(nodes, inputs, outputs, [b], opset=21)
    feeds = {"x": numbers((3, 17), np.uint8), "c": np.array(condition)}
    (wanted,) = native_session(model).run(None, feeds)
    np.testing.assert_array_equal(new_session(model, providers=["wasm"]).run(None, feeds)[0], wanted)

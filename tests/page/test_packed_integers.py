"""8-bit weights that Python packs for the CPU: every operator that reads them, compared with native onnxruntime."""

import numpy as np
import pytest
from array_models import assert_as_native, model_of
from native import native_session
from onnx import helper
from text_form import parse

from py_ort.compiler import compile_model

RNG = np.random.default_rng(11)
#: (type of B, its zero points: none, one, one per column)
WEIGHTS = [(np.uint8, None), (np.uint8, ()), (np.uint8, (19,)), (np.int8, ()), (np.int8, (19,))]


def numbers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return RNG.integers(0, 256, shape).astype(np.uint8).view(dtype)


def check(new_session, node, x: np.ndarray, constants: dict[str, np.ndarray], tolerance: float = 0) -> None:
    used = {name: array for name, array in constants.items() if name in node.input}
    model = model_of([node], {"x": x}, ["y"], used).SerializeToString()
    placed = compile_model(model, providers=["wasm"]).model.graph
    packed = [n for n in placed if n.op_type == node.op_type]
    assert all("packed_n" in n.attributes or "weight_layout" in n.attributes for n in packed)
    (wanted,) = native_session(model).run(None, {"x": x})
    (got,) = new_session(model, providers=["wasm"]).run(None, {"x": x})
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


#: Inputs of products; "b_zero" may be missing.
INPUTS = {
    "MatMulInteger": "x b x_zero b_zero",
    "MatMulIntegerToFloat": "x b x_scale b_scale x_zero b_zero",
    "QLinearMatMul": "x x_scale x_zero b b_scale b_zero y_scale y_zero",
    "QGemm": "x x_scale x_zero b b_scale b_zero - y_scale y_zero",
}
#: Of activations and of results.
STEPS = {"x_zero": np.uint8(77), "x_scale": np.float32(0.02), "y_scale": np.float32(0.6), "y_zero": np.uint8(101)}


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize(
    ("op", "dtype", "zero"),
    [
        *((op, *weights) for op in ("MatMulInteger", "MatMulIntegerToFloat") for weights in WEIGHTS),
        *((op, *weights) for op in ("QLinearMatMul", "QGemm") for weights in WEIGHTS if weights[1] is not None),
    ],
    ids=str,
)
def test_products(new_session, op, dtype, zero, rows):
    shape = () if zero is None else zero
    constants = {"b": numbers((33, 19), dtype), "b_scale": RNG.uniform(0.001, 0.01, shape).astype(np.float32), **STEPS}
    if zero is not None:
        constants["b_zero"] = numbers(zero, dtype)
    inputs = [name if name in {"x", *constants} else "" for name in INPUTS[op].split()]
    domain = "com.microsoft" if op in ("MatMulIntegerToFloat", "QGemm") else ""
    node = helper.make_node(op, inputs, ["y"], domain=domain)
    check(new_session, node, numbers((rows, 33), np.uint8), constants, 1e-6 if op.endswith("Float") else 0)


@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, None), (np.uint8, (1,)), (np.int8, (1,))], ids=str)
def test_dynamic(new_session, dtype, zero):
    constants = {"b": numbers((33, 19), dtype), "b_scale": np.float32([0.01])}
    if zero is not None:
        constants["b_zero"] = numbers(zero, dtype)
    inputs = ["x", "b", "b_scale", *(["b_zero"] if zero is not None else [])]
    node = helper.make_node("DynamicQuantizeMatMul", inputs, ["y"], domain="com.microsoft")
    x = RNG.standard_normal((5, 33)).astype(np.float32)
    check(new_session, node, x, constants, 1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(
    ("channels", "out", "group", "kernel"),
    [(3, 19, 1, (3, 3)), (8, 12, 2, (1, 1)), (4, 8, 4, (3, 2)), (5, 9, 1, (3,)), (3, 4, 1, (2, 2, 2))],
    ids=str,
)
@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
def test_convolutions(new_session, op, channels, out, group, kernel, dtype):
    constants = {
        "w": numbers((out, channels // group, *kernel), dtype),
        "w_zero": numbers((), dtype),
        "w_scale": RNG.uniform(0.001, 0.01, (out,)).astype(np.float32),
        **STEPS,
    }
    inputs = ["x", "w", "x_zero", "w_zero"]
    if op == "QLinearConv":
        inputs = ["x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"]
        constants["w_zero"] = np.full((out,), constants["w_zero"])
    node = helper.make_node(op, inputs, ["y"], group=group, pads=[1] * 2 * len(kernel))
    check(new_session, node, numbers((2, channels, *(7,) * len(kernel)), np.uint8), constants)


@pytest.mark.parametrize("condition", [True, False])
def test_weights_that_subgraphs_share(new_session, condition):
    """uint8 without a zero point, which gets one in the graph that has the weights."""

    text = """g (uint8[3,17] x, bool c) => (int32[3,9] y) {
        i = If(c) <then_branch = yes () => (int32[3,9] a) { s = MatMulInteger(x, b)  a = Identity(s) },
                   else_branch = no () => (int32[3,9] a) { t = MatMulInteger(x, b)  a = Neg(t) }>
        sum = MatMulInteger(x, b)  y = Add(i, sum) }"""
    model = parse(text, {"b": numbers((17, 9), np.uint8)})
    feeds = {"x": numbers((3, 17), np.uint8), "c": np.array(condition)}
    assert_as_native(new_session(model, providers=["wasm"]), model, feeds)

"""Kernels that also write their rounded results as bytes, and products that read these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from native import native_session
from onnx import TensorProto, helper, numpy_helper

from py_ort.compiler import compile_model
from py_ort.ir.block_products import is_block_product
from py_ort.schema.dialect import NBITS_STEPS, NBITS_WORDS, WORDS_OUTPUT

pytestmark = pytest.mark.browser
MICROSOFT, OURS = "com.microsoft", "com.ms.internal"
_GPU: dict[str, Any] = {"hardware": True, "traits": {"bytesFrom": 0}}
_WANTED = [True, *[False] * (WORDS_OUTPUT - 1), True]
_SCALE, _ZERO = 0.0371, 119
_ROUND = f"FakeQuantize {{}} #{_SCALE} #{_ZERO}.0"


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape, scale=2).astype(np.float32)


def _bytes_of(values: np.ndarray) -> np.ndarray:
    """Minus 128, as in words."""
    return (np.rint(values.reshape(-1) / np.float32(_SCALE)) + _ZERO - 128).astype(np.int8)


def _check(page: Any, op: str, inputs: Sequence[np.ndarray], attributes: dict[str, Any], **more: Any) -> np.ndarray:
    """Both outputs agree, and the first one is the same without the second."""
    domain = more.pop("domain", "")
    (alone,) = page.run(op, inputs, attributes, domain=domain, **{**_GPU, **more}).outputs
    made = page.run(op, inputs, attributes, domain=domain, outputs=_WANTED, **{**_GPU, **more}).outputs
    y, words = made[0], made[WORDS_OUTPUT]
    np.testing.assert_array_equal(y, alone)
    steps = y / np.float32(_SCALE)
    assert np.abs(steps - np.rint(steps)).max() < 1e-3 and len(np.unique(np.rint(steps))) > 20
    np.testing.assert_array_equal(words.view(np.int8), _bytes_of(y))
    return y


@pytest.mark.parametrize("shape", [(3, 5, 36), (2, 1028), (40, 384)])
def test_normalizations(kernel_page: Any, shape: tuple[int, ...]) -> None:
    x, row = _floats(*shape), _floats(shape[-1])
    given = {"epilogue": _ROUND.format(0), "epsilon": 1e-5}
    _check(kernel_page, "LayerNormalization", [x, row, row], given)
    _check(kernel_page, "SimplifiedLayerNormalization", [x, row], {**given, "epilogue": f"Tanh 0;{_ROUND.format(2)}"})
    _check(kernel_page, "SkipLayerNormalization", [x, x[:1] + 1, row], given, domain=MICROSOFT)


@pytest.mark.parametrize("shapes", [((3, 7, 20),), ((2, 3, 8), (8,)), ((4, 1, 12), (5, 12)), ((6, 4), (6, 1))])
def test_chains(kernel_page: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    program = f"Add 0 {len(shapes) - 1};{_ROUND.format(len(shapes))}"
    _check(kernel_page, "ElementwiseChain", [_floats(*s) for s in shapes], {"program": program}, domain=OURS)


@pytest.mark.parametrize("rows", [3, 20, 70])
@pytest.mark.parametrize("tile", ["", "32x32x16_two_slices_4_parts_3"])
def test_products(kernel_page: Any, rows: int, tile: str) -> None:
    traits = {"bytesFrom": 0, **({"tiles": {"*": tile}} if tile else {})}
    a, b, bias = _floats(2, rows, 2, 48), _floats(2, 2, 48, 12) / 8, _floats(12)
    given = {"epilogue": f"FakeQuantize 0 #0.05 #128.0;Bias;Add 2 3;{_ROUND.format(4)}"}
    _check(kernel_page, "MatMul", [a.transpose(0, 2, 1, 3).copy(), b, bias], given, traits=traits)
    perms = {"a_perm": [0, 2, 1, 3], "y_perm": [0, 2, 1, 3]}
    _check(kernel_page, "MatMul", [a, b, bias], {**given, **perms}, traits=traits)


@pytest.mark.parametrize(
    ("op", "domain", "shapes", "given", "device"),
    [
        ("LayerNormalization", "", [(4, 6), (6,)], {"epilogue": _ROUND.format(0)}, _GPU),
        ("ElementwiseChain", OURS, [(8, 6)], {"program": _ROUND.format(0)}, _GPU),
        ("ElementwiseChain", OURS, [(8, 4)], {"program": _ROUND.format(0), "perm": [1, 0]}, _GPU),
        ("MatMul", "", [(20, 8), (8, 6)], {"epilogue": _ROUND.format(0)}, _GPU),
        ("MatMul", "", [(20, 8), (8, 8)], {"epilogue": _ROUND.format(0), "y_perm": [1, 0]}, _GPU),
        ("MatMul", "", [(20, 8), (8, 8)], {"epilogue": _ROUND.format(0)}, {}),
        (
            "MatMul",
            "",
            [(20, 8), (8, 8)],
            {"epilogue": _ROUND.format(0)},
            {"hardware": True, "traits": {"bytesFrom": 1e999}},
        ),
    ],
)
def test_who_cannot_writes_none(
    kernel_page: Any, op: str, domain: str, shapes: list[tuple[int, ...]], given: dict[str, Any], device: dict[str, Any]
) -> None:
    """A device that cannot use them writes none: a reader sees that, and makes its own."""
    result = kernel_page.run(op, [_floats(*s) for s in shapes], given, domain=domain, outputs=_WANTED, **device)
    assert result.outputs[0].size > 0 and result.outputs[WORDS_OUTPUT].shape == (0,)


def _product(rows: int, k: int, n: int) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    rng = np.random.default_rng(rows)
    a = ((rng.integers(0, 256, (rows, k)) - _ZERO) * np.float32(_SCALE)).astype(np.float32)
    weights = rng.integers(0, 256, (n, 1, k)).astype(np.uint8)
    attributes = {"K": k, "N": n, "bits": 8, "block_size": k, "a_scale": _SCALE, "a_zero": float(_ZERO)}
    return [a, weights, rng.random((n, 1)).astype(np.float32)], attributes


@pytest.mark.parametrize("rows", [5, 16, 130])
@pytest.mark.parametrize("given", [True, False])
def test_products_read_them(kernel_page: Any, rows: int, given: bool) -> None:
    inputs, attributes = _product(rows, 64, 36)
    (wanted,) = kernel_page.run("MatMulNBits", inputs, attributes, domain=MICROSOFT, **_GPU).outputs
    words = _bytes_of(inputs[0]).view(np.uint32) if given else np.zeros(0, np.uint32)
    row = np.array([[0, _ZERO - 128, np.float32(_SCALE).view(np.int32), 0]], np.int32)
    more = [*inputs, *[None] * (NBITS_WORDS - len(inputs)), words, row]
    result = kernel_page.run("MatMulNBits", more, attributes, domain=MICROSOFT, **_GPU)
    np.testing.assert_allclose(result.outputs[0], wanted, rtol=1e-6)
    assert ("byte_rows" in result.shaders) == (rows >= 16 and not given)


def _model() -> bytes:
    """Rounded rows of a normalization with three readers: a product each, and the sum after one of them."""
    rng = np.random.default_rng(3)
    constants = {
        "s": np.float32(_SCALE),
        "z": np.uint8(_ZERO),
        "row": np.ones(64, np.float32),
        "p": rng.integers(-127, 128, (64, 64)).astype(np.int8),
        "q": rng.integers(-127, 128, (64, 64)).astype(np.int8),
        "r": np.float32(0.001),
    }
    nodes = [
        helper.make_node("LayerNormalization", ["x", "row"], ["normal"]),
        helper.make_node("QuantizeLinear", ["normal", "s", "z"], ["bytes"]),
        helper.make_node("DequantizeLinear", ["bytes", "s", "z"], ["rows"]),
        *[helper.make_node("DequantizeLinear", [name, "r"], [f"{name}_floats"]) for name in "pq"],
        *[helper.make_node("MatMul", ["rows", f"{name}_floats"], [f"{name}_made"]) for name in "pq"],
        helper.make_node("Sin", ["q_made"], ["sine"]),
        helper.make_node("Add", ["p_made", "rows"], ["total"]),
        helper.make_node("Mul", ["total", "sine"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 64]) for name in "xy")
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def test_one_kernel_writes_for_all_products() -> None:
    nodes = list(compile_model(_model(), providers=["webgpu", "wasm"]).model.graph)
    (host,) = (node for node in nodes if node.op_type == "LayerNormalization")
    products = [node for node in nodes if is_block_product(node)]
    assert len(products) == 2
    for product in products:
        assert product.inputs[NBITS_WORDS] is host.outputs[WORDS_OUTPUT]
        np.testing.assert_array_equal(
            product.inputs[NBITS_STEPS].const_value.numpy(), [[0, _ZERO - 128, np.float32(_SCALE).view(np.int32), 0]]
        )


def test_a_chain_of_columns_writes_none(new_session: Any) -> None:
    model = onnx.load_from_string(_model())
    nodes = [
        helper.make_node("Split", ["x", "sizes"], ["first", "second"], axis=-1),
        helper.make_node("Sin", ["second"], ["sines"]),
        helper.make_node("Mul", ["sines", "first"], ["normal"]),
        *list(model.graph.node)[1:],
    ]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 128
    model.graph.initializer.append(numpy_helper.from_array(np.array([64, 64]), "sizes"))
    made = compile_model(model.SerializeToString(), providers=["webgpu", "wasm"]).model.graph
    (chain,) = (node for node in made if node.op_type == "ElementwiseChain" and "x_columns" in node.attributes)
    assert len(chain.outputs) == 1
    feeds = {"x": _floats(20, 128)}
    (found,) = new_session(model.SerializeToString(), providers=["webgpu"]).run(None, feeds)
    (wanted,) = native_session(model).run(None, feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)

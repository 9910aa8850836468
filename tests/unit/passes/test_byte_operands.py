"""Convolutions and products that receive 8-bit operands on webgpu."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from graphs import parse
from onnx import TensorProto, helper, numpy_helper

from py_ort.compiler import CompileOptions, compile_model
from py_ort.compiler.passes.quantization import byte_steps_of
from py_ort.compiler.saved.standard_form import StandardForm
from py_ort.exceptions import InvalidGraph
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import array, attribute

_RNG = np.random.default_rng(1)
_CONSTANTS = {
    "s": np.float32(0.03),
    "t": np.float32(0.07),
    "z": np.uint8(7),
    "w": _RNG.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8),
    "u": np.arange(288).astype(np.uint8).reshape(8, 4, 3, 3),
    "g": _RNG.integers(-127, 128, (8, 2, 3, 3)).astype(np.int8),
    "ws": np.linspace(0.01, 0.02, 8, dtype=np.float32),
    "one": np.float32(0.01),
    "wz": np.zeros(8, np.int8),
    "uz": np.full(8, 128, np.uint8),
    "n": _RNG.integers(-127, 128, (64, 64)).astype(np.int8),
    "far": np.full(8, 99, np.uint8),
    "m": _RNG.integers(-127, 128, (64, 64)).astype(np.int8),
    "ms": np.linspace(0.01, 0.02, 64, dtype=np.float32),
}
_X = "p = QuantizeLinear(x, s, z)  q = DequantizeLinear(p, s, z)"
_W = "v = DequantizeLinear<axis=0>(w, ws, wz)"
# id: (nodes from x [1, 4, 6, 5] to y, scale and zero point of the pixels or None)
CONVOLUTIONS: dict[str, tuple[str, tuple[float, float] | None]] = {
    "pixels and weights": (f"{_X} {_W} y = Conv(q, v)", (0.03, 7)),
    "one scale": (f"{_X} v = DequantizeLinear(w, one) y = Conv(q, v)", (0.03, 7)),
    "behind a pool": (f"{_X} {_W} a = MaxPool<kernel_shape=[2, 2]>(q) y = Conv(a, v)", (0.03, 7)),
    "behind a convolution": (
        f"""{_X} v = DequantizeLinear<axis=0>(w, ws, wz) k = Slice(v, b, e, ax) c = Conv<pads=[1, 1, 1, 1]>(q, k)
        r = QuantizeLinear(c, t, z) d = DequantizeLinear(r, t, z) y = Conv(d, v)""",
        (0.07, 7),
    ),
    "joined": (f"{_X} {_W} a = Relu(q) b0 = QuantizeLinear(a, s, z) b1 = DequantizeLinear(b0, s, z) "
               "h = Concat<axis=2>(q, b1) y = Conv(h, v)", (0.03, 7)),
    "joined in other steps": (f"{_X} {_W} a = Relu(q) b0 = QuantizeLinear(a, t, z) b1 = DequantizeLinear(b0, t, z) "
                              "h = Concat<axis=2>(q, b1) y = Conv(h, v)", None),
    "unsigned weights": (f"{_X} v = DequantizeLinear<axis=0>(u, ws, uz) y = Conv(q, v)", (0.03, 7)),
    "weights beyond a byte": (f"{_X} v = DequantizeLinear<axis=0>(u, ws, far) y = Conv(q, v)", None),
    "groups": (f"{_X} v = DequantizeLinear<axis=0>(g, ws, wz) y = Conv<group=2>(q, v)", None),
    "floats": (f"{_W} y = Conv(x, v)", None),
    "averages": (f"{_X} {_W} a = AveragePool<kernel_shape=[2, 2]>(q) y = Conv(a, v)", None),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case: str) -> None:
    body, expected = CONVOLUTIONS[case]
    slices = {"b": np.array([0]), "e": np.array([4]), "ax": np.array([0])}
    model = parse(f"g (float[1,4,6,5] x) => (float[e0,f0,g0,h0] y) {{ {body} }}", {**_CONSTANTS, **slices}, opset=21)
    graph = compile_model(model.SerializeToString(), providers=["webgpu", "wasm"]).model.graph
    last = [node for node in graph if node.op_type == "Conv"][-1]
    assert not any("w_scale" in node.attributes for node in graph)
    if expected is None:
        assert "a_scale" not in last.attributes and len(last.inputs) <= 4
        return
    assert attribute(last, "a_scale", 0.0) == pytest.approx(expected[0])
    assert attribute(last, "a_zero", -1.0) == expected[1]
    weights, scales = array(last.inputs[1]), array(last.inputs[4])
    assert weights is not None and scales is not None and scales.shape == (8,)
    integers = weights / scales  # for each output, which is the last axis by now
    np.testing.assert_allclose(integers, np.rint(integers), atol=1e-4)


# id: (nodes from x [2, 20, 64] to y, the product's attributes)
PRODUCTS: dict[str, tuple[str, dict[str, float]]] = {
    "its own range": (
        """p, sx, zx = DynamicQuantizeLinear(x)  i = MatMulInteger(p, m, zx)  f = Cast<to=1>(i)
        k = Mul(sx, one)  y = Mul(f, k)""",
        {"a_dynamic": 1},
    ),
    "given steps": (f"{_X} v = DequantizeLinear<axis=1>(m, ms) y = MatMul(q, v)", {"a_scale": 0.03, "a_zero": 7}),
    "a range that others read": (
        """p, sx, zx = DynamicQuantizeLinear(x)  i = MatMulInteger(p, m, zx)  f = Cast<to=1>(i)
        k = Mul(sx, one)  a = Mul(f, k)  i1 = MatMulInteger(p, n, zx)  f1 = Cast<to=1>(i1)
        k1 = Mul(sx, one)  a1 = Mul(f1, k1)  y = Mul(a, a1)""",
        {},
    ),
    "floats": ("v = DequantizeLinear<axis=1>(m, ms) y = MatMul(x, v)", {}),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case: str) -> None:
    body, expected = PRODUCTS[case]
    model = parse(f"g (float[2,20,64] x) => (float[2,20,64] y) {{ {body} }}", _CONSTANTS, opset=21)
    graph = compile_model(model.SerializeToString(), providers=["webgpu", "wasm"]).model.graph
    found = next(node for node in graph if node.op_type in ("MatMulNBits", "MatMul"))
    told = {
        name: attribute(found, name, 0.0) for name in ("a_dynamic", "a_scale", "a_zero") if name in found.attributes
    }
    assert told == pytest.approx(expected)


# id: (operator, shape of the scales of its weights, true if it becomes one of floats)
SCALES: dict[str, tuple[str, tuple[int, ...], bool]] = {
    "of outputs": ("ConvInteger", (8, 1, 1), True),
    "of outputs, of all axes": ("ConvInteger", (1, 8, 1, 1), True),
    "along the width": ("ConvInteger", (8,), False),
    "along the height": ("ConvInteger", (8, 1), False),
    "an axis more": ("ConvInteger", (1, 1, 1, 1, 1), False),
    "of columns": ("MatMulInteger", (8,), True),
    "of columns, of all axes": ("MatMulInteger", (1, 1, 1, 8), True),
    "an axis more than a product has": ("MatMulInteger", (1, 1, 1, 1, 8), False),
    "a number of too many axes": ("MatMulInteger", (1, 1, 1, 1, 1), False),
}


@pytest.mark.parametrize("case", SCALES)
def test_scales_as_they_broadcast(case: str) -> None:
    """Scales that are not of the weights stay as they are: a factor of the result."""
    product, shape, floats = SCALES[case]
    weights = _RNG.integers(-9, 9, (8, 8, 1, 1) if product == "ConvInteger" else (8, 8)).astype(np.int8)
    scales = np.linspace(0.01, 0.02, math.prod(shape), dtype=np.float32).reshape(shape)
    body = (
        f"p, sx, zx = DynamicQuantizeLinear(x) i = {product}(p, w, zx) f = Cast<to=1>(i) k = Mul(sx, ws) y = Mul(f, k)"
    )
    model = parse(
        f"g (float[2,8,8,8] x) => (float y) {{ {body} }}", {"w": weights, "ws": scales}, opset=21
    ).SerializeToString()
    found = {node.op_type for node in compile_model(model, providers=["webgpu", "wasm"]).model.graph}
    assert (product not in found) is floats


@pytest.mark.parametrize("outer", [False, True], ids=["in both branches", "in a branch and behind"])
def test_each_graph_has_a_rounding_of_its_own(outer: bool) -> None:
    """A rounding in one branch is not seen by the other, nor by nodes that come later."""
    weights = _RNG.integers(-9, 9, (8, 8)).astype(np.int8)

    def product(name: str) -> list[onnx.NodeProto]:
        made = [f"{name}_{each}" for each in "qszifk"]
        return [
            helper.make_node("DynamicQuantizeLinear", ["x"], made[:3]),
            helper.make_node("MatMulInteger", [made[0], "w", made[2]], [made[3]]),
            helper.make_node("Cast", [made[3]], [made[4]], to=1),
            helper.make_node("Mul", [made[1], "ws"], [made[5]]),
            helper.make_node("Mul", [made[4], made[5]], [name]),
        ]

    def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["m", 8])])

    other = [helper.make_node("Neg", ["x"], ["b"])] if outer else product("b")
    nodes = [
        helper.make_node("If", ["c"], ["r"], then_branch=branch("a", product("a")), else_branch=branch("b", other)),
        *(product("d") if outer else [helper.make_node("Neg", ["r"], ["d"])]),
        helper.make_node("Add", ["r", "d"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["m", 8]) for name in "xy"]
    given = [infos[0], helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    constants = [numpy_helper.from_array(value, name) for value, name in ((weights, "w"), (np.float32(0.1), "ws"))]
    model = helper.make_model(
        helper.make_graph(nodes, "g", given, infos[1:], constants),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    assert compile_model(model.SerializeToString(), providers=["webgpu", "wasm"])


@pytest.mark.parametrize("name", ["a_dynamic", "epilogue", "gate"])
def test_models_do_not_say_what_passes_write(name: str) -> None:
    value = 1 if name == "a_dynamic" else "Swish 0"
    node = helper.make_node(
        "MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=16, N=4, bits=8, block_size=16, **{name: value}
    )
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, d]) for n, d in (("x", 16), ("y", 4))]
    constants = {"b": np.zeros((4, 1, 16), np.uint8), "s": np.ones(4, np.float32)}
    graph = helper.make_graph(
        [node], "g", infos[:1], infos[1:], [numpy_helper.from_array(v, k) for k, v in constants.items()]
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    with pytest.raises(InvalidGraph, match=f"'{name}', which the operator does not know"):
        compile_model(model.SerializeToString(), providers=["webgpu"])


def _conv(graph: ir.Graph) -> list[ir.Node]:
    return [node for node in graph if node.op_type == "Conv"]


def test_joined_convolutions_keep_their_scales() -> None:
    """A convolution that writes into a tensor of others has its scales in it."""
    body = f"""{_X} {_W} c = Conv(q, v) r = QuantizeLinear(c, t, z) d = DequantizeLinear(r, t, z)
        k = DequantizeLinear<axis=0>(w, one8, wz) e = Conv(q, k) f = QuantizeLinear(e, t, z)
        h = DequantizeLinear(f, t, z) y = Concat<axis=1>(d, h)"""
    constants = {**_CONSTANTS, "one8": np.full(8, 0.01, np.float32)}
    model = parse(f"g (float[1,4,6,5] x) => (float[e0,f0,g0,h0] y) {{ {body} }}", constants, opset=21)
    found = _conv(compile_model(model.SerializeToString(), providers=["webgpu", "wasm"]).model.graph)
    assert sorted(attribute(node, "into", 0) for node in found) == [0, 5]
    for node in found:
        scales = array(node.inputs[4])
        assert scales is not None and scales.shape == (8,)


def test_siblings_share_their_launch() -> None:
    """Convolutions of the same pixels become one, with both scales."""
    shapes = {"a": (8, 8, 1, 1), "b": (8, 8, 1, 1), "c": (8, 8, 3, 3), "d": (8, 8, 3, 3), "e": (8, 8, 1, 1)}
    weights = {name: _RNG.integers(-127, 128, shape).astype(np.int8) for name, shape in shapes.items()}
    conv = """w{0} = DequantizeLinear<axis=0>({0}, ws, wz) c{0} = Conv<pads=[{2}, {2}, {2}, {2}]>({1}, w{0})
        i{0} = QuantizeLinear(c{0}, t, z) o{0} = DequantizeLinear(i{0}, t, z)"""
    parts = [("e", "q", 0), ("a", "q", 0), ("c", "oa", 1), ("b", "q", 0), ("d", "ob", 1)]
    body = " ".join(conv.format(*part) for part in parts)
    model = parse(
        f"g (float[1,8,6,5] x) => (float[e0,f0,g0,h0] y) {{ {_X} {body} y = Concat<axis=1>(oe, oc, od) }}",
        {**_CONSTANTS, **weights},
        opset=21,
    )
    found = _conv(compile_model(model.SerializeToString(), providers=["webgpu", "wasm"]).model.graph)
    scales = [array(node.inputs[4]) for node in found]
    assert sorted(each.shape for each in scales if each is not None) == [(8,), (8,), (8,), (16,)]


def test_nodes_that_are_wanted_on_the_cpu_keep_what_they_do() -> None:
    """A product may go where no kernel has its end."""
    body, _ = PRODUCTS["its own range"]
    body = body.replace("y = Mul(f, k)", "r = Mul(f, k)  [act] y = Tanh(r)")
    weights = {"m": _RNG.integers(-127, 128, (512, 512)).astype(np.int8)}
    model = parse(f"g (float[2,20,512] x) => (float[2,20,512] y) {{ {body} }}", {**_CONSTANTS, **weights}, opset=21)
    options = CompileOptions(force_cpu_node_names=("act",))
    found = compile_model(model.SerializeToString(), providers=["webgpu", "wasm"], options=options)
    assert [node.provider for node in found.placement.nodes if node.op_type == "Tanh"] == ["wasm"]
    assert not any("a_dynamic" in node.attributes for node in found.model.graph)


def test_operators_of_users_are_saved_as_they_are() -> None:
    """Whatever their names are."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2, 2]))
    node = ir.Node("my.ops", "MatMul", [x, x, x, x], attributes=ir.convenience.convert_attributes({"a_scale": 0.5}))
    node.outputs[0].name, node.outputs[0].type = "y", x.type
    graph = ir.Graph([x], [node.outputs[0]], nodes=[node], opset_imports={"": 21, "my.ops": 1}, name="g")
    (saved,) = StandardForm().model(ir.Model(graph, ir_version=10)).graph.node
    assert (saved.domain, saved.op_type, list(saved.input)) == ("my.ops", "MatMul", ["x"] * 4)
    assert [item.name for item in saved.attribute] == ["a_scale"]


def test_of_several_outputs_the_first_is_rounded() -> None:
    """A normalization's other outputs are its mean, its deviation and the sum before it."""
    x, outputs = ir.Value(name="x"), [ir.Value(name=f"y{i}") for i in range(4)]
    node = ir.Node("com.microsoft", "SkipLayerNormalization", [x, x], outputs=outputs)
    Epilogue().then("FakeQuantize", [0.5, 7]).write(node)
    found = [byte_steps_of(value) for value in outputs]
    assert found == [("FakeQuantize", 0.5, 7), None, None, None]

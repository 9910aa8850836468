"""Values of constants only are native onnxruntime's, if the compiler computes them or leaves them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

I64_MIN = -(2**63)
F = np.float32


def _recurrent(op_type: str, direction: str) -> str:
    return f"""g (float[1] z) => (float[a,b,c,d] y) {{
        y0 = {op_type}<hidden_size=2, direction="{direction}">(x, w, r, , lens)  y = Add(y0, z) }}"""


def _gates(gates: int, directions: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    shapes = {"x": (4, 3, 2), "w": (directions, gates * 2, 2), "r": (directions, gates * 2, 2)}
    constants = {name: rng.standard_normal(shape).astype(F) for name, shape in shapes.items()}
    return {**constants, "lens": np.array([2, 4, 1], np.int32)}


RECURRENT = {
    f"{op_type} {direction}": (_recurrent(op_type, direction), _gates(gates, 1 + (direction[0] == "b")))
    for op_type, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    for direction in ("forward", "reverse", "bidirectional")
}
CASES: dict[str, tuple[str, dict[str, np.ndarray]]] = {
    "a slice that starts before the first element": (
        "g () => (float[n] y) { y = Slice(x, s, e, a, t) }",
        {
            **{"x": np.arange(7, dtype=F), "s": np.array([-8]), "e": np.array([I64_MIN])},
            **{"a": np.array([0]), "t": np.array([-2])},
        },
    ),
    "and asks for a size": (
        "g (float[7,2] x) => (int64[n] y) { c = Slice(x, s, e, a, t)  y = Shape(c) }",
        {"s": np.array([-8]), "e": np.array([I64_MIN]), "a": np.array([0]), "t": np.array([-2])},
    ),
    "of a shape": (
        "g (float[7,2,5] x) => (int64[n] y) { c = Shape(x)  y = Slice(c, s, e, a, t) }",
        {"s": np.array([-9]), "e": np.array([I64_MIN]), "a": np.array([0]), "t": np.array([-1])},
    ),
    "GlobalMaxPool": ("g () => (float[a,b,c] y) { y = GlobalMaxPool(x) }", {"x": np.ones((1, 2, 3), F)}),
    "GlobalLpPool": ("g () => (float[a,b,c] y) { y = GlobalLpPool<p=3>(x) }", {"x": np.ones((1, 2, 3), F)}),
    "LpNormalization": (
        "g () => (float[n] y) { y = LpNormalization<p=1, axis=0>(x) }",
        {"x": np.array([1, -2, 3], F)},
    ),
    "indices of MaxPool": (
        "g () => (float[a,b,c] y, int64[a,b,c] i) { y, i = MaxPool<kernel_shape=[2]>(x) }",
        {"x": np.array([[[1, 3, 2]], [[4, 6, 5]]], F)},
    ),
    "MaxPool of a channel": (
        "g () => (float[a,b,c] y, int64[a,b,c] i) { y, i = MaxPool<kernel_shape=[2]>(x) }",
        {"x": np.array([[[1, 3, 2]], [[3, 1, 7]]], F)},
    ),
    "AveragePool of a window behind the end": (
        """g () => (float[a,b,c,d] y) {
        y = AveragePool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1, count_include_pad=1, pads=[0,1,1,0]>(x) }""",
        {"x": np.arange(24, dtype=F).reshape(1, 1, 4, 6)},
    ),
    "AveragePool dilated": (
        "g () => (float[a,b,c] y) { y = AveragePool<kernel_shape=[2], dilations=[2]>(x) }",
        {"x": np.arange(6, dtype=F).reshape(1, 1, 6)},
    ),
    "LpPool of a window behind the end": (
        "g () => (float[a,b,c] y) { y = LpPool<kernel_shape=[3], strides=[2], ceil_mode=1, p=2>(x) }",
        {"x": np.arange(6, dtype=F).reshape(1, 1, 6)},
    ),
    "Resize of the batch": (
        """g () => (float[a,b,c,d] y) { y = Resize<
        mode="nearest", coordinate_transformation_mode="pytorch_half_pixel", nearest_mode="ceil">(x, , k) }""",
        {"x": np.arange(2, dtype=F).reshape(2, 1, 1, 1), "k": np.array([0.5, 1, 1, 1], F)},
    ),
    "QLinearMatMul": (
        "g () => (uint8[a,b] y) { y = QLinearMatMul(a, sa, za, b, sb, zb, sy, zy) }",
        {
            **{"a": np.arange(48, dtype=np.uint8).reshape(6, 8) * 5, "sa": F(0.0131), "za": np.uint8(113)},
            **{"b": np.arange(56, dtype=np.uint8).reshape(8, 7) * 4, "sb": F(0.0173), "zb": np.uint8(97)},
            **{"sy": F(0.0107), "zy": np.uint8(118)},
        },
    ),
    "MelWeightMatrix": (
        "g () => (float[a,b] y) { y = MelWeightMatrix(n, d, r, low, high) }",
        {"n": np.int64(8), "d": np.int64(16), "r": np.int64(8192), "low": F(0), "high": F(4096)},
    ),
    "int32 that wraps": (
        "g () => (int32[1] y) { y = Add(a, b) }",
        {"a": np.array([2147483647], np.int32), "b": np.array([1], np.int32)},
    ),
    "uint8 that wraps": (
        "g () => (uint8[1] y) { y = Sub(a, b) }",
        {"a": np.array([3], np.uint8), "b": np.array([4], np.uint8)},
    ),
    "int64 that wraps": (
        "g () => (int64[2] y) { y = Mul(a, b) }",
        {"a": np.array([2**62, -(2**63)]), "b": np.array([6, -1])},
    ),
    "a size that wraps": (
        "g (float[70000,1] x) => (int32[n] y) { s = Shape(x)  i = Cast<to=6>(s)  y = Mul(i, i) }",
        {},
    ),
    "a size that no float holds": (
        "g (float[16777217,0] x) => (int64[n] y) { s = Shape(x)  f = Cast<to=1>(s)  y = Cast<to=7>(f) }",
        {},
    ),
    "the least integer divided": (
        "g () => (int32[2] y) { y = Div(a, b) }",
        {"a": np.array([-(2**31), -7], np.int32), "b": np.array([2, 2], np.int32)},
    ),
    "an empty vector and a number": (
        "g () => (int64[n] y) { y = Add(a, b) }",
        {"a": np.zeros(0, int), "b": np.array([1])},
    ),
    "an empty shape": (
        "g (float x) => (int64[n] y, bool[n] e) { s = Shape(x)  y = Add(s, one)  e = Equal(s, one) }",
        {"one": np.int64(1)},
    ),
    "a choice by nothing": (
        "g (float x) => (int64[n] y) { s = Shape(x)  c = Equal(s, one)  y = Where(c, one, two) }",
        {"one": np.int64(1), "two": np.int64(2)},
    ),
    "a choice by a matrix": (
        "g (float[3,4] x) => (float[a,b] y) { w = Where(c, two, two1)  s = Squeeze(w, one)  y = Reshape(x, s) }",
        {
            **{"c": np.array([[True], [False]]), "two": np.array([4]), "two1": np.array([3]), "one": np.array([1])},
        },
    ),
    "a range that ends before it begins": (
        "g () => (int64[n] y) { y = Range(a, b, c) }",
        {"a": np.int64(5), "b": np.int64(3), "c": np.int64(1)},
    ),
    **RECURRENT,
}


@pytest.mark.parametrize("level", ["disabled", "basic", "all"])
@pytest.mark.parametrize(("graph", "constants"), CASES.values(), ids=CASES)
def test_equals_native(graph: str, constants: dict[str, np.ndarray], level: str) -> None:
    model = parse(graph, constants)
    check_equal(model, compiled(model, level=level), tolerance=1e-6)


STAY = {
    "Slice": ("g () => (float[n] y) { y = Slice(x, s, e, s) }", {"s": np.array([0]), "e": np.array([2])}),
    "chain": (
        """g () => (float[n,m] y) { r = Sqrt(x)  q = Unsqueeze(r, one)  t = Transpose<perm=[1,0]>(q)  p = Add(t, q)
        u = Cast<to=10>(p)  v = Cast<to=1>(u)  w = Expand(v, e)  k = Tile(w, e)  y = Concat<axis=0>(k, v) }""",
        {"one": np.array([1]), "e": np.array([1, 1])},
    ),
    "dequantized": (
        "g () => (float[n] y) { q = Cast<to=2>(x)  y = DequantizeLinear(q, s, z) }",
        {"s": F(0.5), "z": np.uint8(3)},
    ),
}


@pytest.mark.parametrize(("graph", "constants"), STAY.values(), ids=STAY)
def test_is_folded(graph: str, constants: dict[str, np.ndarray]) -> None:
    """Only the node that outputs the constant remains."""
    result = check_equal(parse(graph, {**constants, "x": np.arange(4, dtype=F)}))
    assert operators(result) == {"Identity": 1}


TEXTS = {
    "joined": "g () => (string[a] y) { y = Concat<axis=0>(k, k) }",
    "transposed": "g () => (string[a,b] y) { r = Reshape(k, s)  y = Transpose(r) }",
    "numbers": "g () => (string[a] y) { i = Cast<to=7>(n)  y = Cast<to=8>(i) }",
    "repeated": "g () => (string[a] y) { y = Tile(k, t) }",
    "chosen": "g () => (string[a] y) { y = Where(c, k, k) }",
    "beside what is fed": "g (string[1] x) => (string[a] y) { j = Concat<axis=0>(k, k)  y = Concat<axis=0>(j, x) }",
}


@pytest.mark.parametrize("graph", TEXTS.values(), ids=TEXTS)
def test_strings_equal_native(graph: str) -> None:
    """Elements without a fixed size."""
    numbers = {"s": np.array([2, -1]), "t": np.array([3]), "n": np.array([1, -3, 7], F), "c": np.array([True, False])}
    model = parse(graph, numbers)
    model.graph.initializer.append(onnx.helper.make_tensor("k", onnx.TensorProto.STRING, [2], ["a", "äö"]))
    feeds = {"x": np.array(["z"], object)} if model.graph.input else {}
    (wanted,), (found,) = run_native(model, feeds), run_native(standard_form(compiled(model)), feeds)
    assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())


def test_a_size_too_large_to_fold_is_no_memory_error() -> None:
    """The compiler does not try nodes that only the kernel can refuse."""
    model = parse(
        "g (float[1] z) => (float[n] y) { r = Range(a, b, c)  f = Cast<to=1>(r)  y = Add(f, z) }",
        {"a": np.int64(0), "b": np.int64(2**30), "c": np.int64(1)},
    )
    assert operators(compiled(model)).get("Range") == 1


def test_bfloat16_weights_are_folded() -> None:
    model = parse("g (float[2,3] x) => (float[a,b] y) { w = Cast<to=1>(k)  y = MatMul(x, w) }", {})
    weights = np.arange(12, dtype=F).reshape(3, 4)
    model.graph.initializer.append(
        onnx.helper.make_tensor("k", onnx.TensorProto.BFLOAT16, weights.shape, weights.reshape(-1).tolist())
    )
    result = compiled(model)
    assert operators(result) == {"MatMul": 1}
    feeds = {"x": np.ones((2, 3), F)}
    np.testing.assert_array_equal(run_native(standard_form(result), feeds)[0], feeds["x"] @ weights)

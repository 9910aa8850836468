"""float16 compared with native onnxruntime. On WebGPU as f16 if the adapter has it, otherwise as f32 (SwiftShader)."""

from __future__ import annotations

import re

import numpy as np
import pytest
import small_models
from graphs import parse
from native import native_session
from onnx import TensorProto, helper, numpy_helper

from py_ort import OrtValue

HALF = TensorProto.FLOAT16
RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3, 9, 9)).astype(np.float16)


def half(name: str, *shape: int | str) -> object:
    return helper.make_tensor_value_info(name, HALF, shape)


def weight(name: str, *shape: int) -> object:
    return numpy_helper.from_array((RNG.standard_normal(shape) * 0.3).astype(np.float16), name)


def classifier() -> bytes:
    return small_models.model(
        [
            helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"], name="relu"),
            helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
            helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
            helper.make_node("Gemm", ["f", "v", "d"], ["g"], name="gemm", transB=1),
            helper.make_node("Softmax", ["g"], ["y"], name="softmax"),
        ],
        [half("x", "N", 3, 9, 9)],
        [half("y", "N", 5), half("g", "N", 5)],
        [weight("w", 8, 3, 3, 3), weight("b", 8), weight("v", 5, 8), weight("d", 5)],
    )


def native(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return native_session(model).run(None, feeds)


def providers(on_cpu: str = "") -> list:
    return [("webgpu", {"forceCpuNodeNames": [on_cpu]}) if on_cpu else "webgpu"]


@pytest.mark.parametrize("on_cpu", ["", "relu", "gemm"])
def test_a_model(new_session, on_cpu):
    """With a node on the CPU in the middle the core widens and narrows."""
    model = classifier()
    session = new_session(model, providers=providers(on_cpu))
    assert session.placement().counts()["wasm"] == (1 if on_cpu else 0), str(session.placement())
    wanted = native(model, {"x": X})
    for _ in range(2):
        for actual, expected in zip(session.run(None, {"x": X}), wanted, strict=True):
            assert actual.dtype == np.float16
            np.testing.assert_allclose(actual.astype(np.float32), expected.astype(np.float32), rtol=4e-3, atol=2e-3)


def test_numbers_that_float16_cannot_hold(new_session):
    """Sums beyond the largest float16 are infinite when they are downloaded, and when Cast converts them."""
    single = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])
    model = small_models.model(
        [
            helper.make_node("Add", ["x", "x"], ["sum"]),
            helper.make_node("Cast", ["single"], ["rounded"], to=HALF),
            helper.make_node("Cast", ["rounded"], ["y"], to=TensorProto.FLOAT),
        ],
        [half("x", "N"), helper.make_tensor_value_info("single", TensorProto.FLOAT, ["N"])],
        [half("sum", "N"), single],
    )
    feeds = {
        "x": np.array([1, 40000, -65504, np.nan, 2**-24, np.inf], np.float16),
        "single": np.array([1 / 3, 65519, 65520, -1e9, 2**-25 * 1.5, np.nan], np.float32),
    }
    session = new_session(model, providers=["webgpu"])
    assert session.placement().counts()["wasm"] == 0, str(session.placement())
    for actual, expected in zip(session.run(None, feeds), native(model, feeds), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


def test_values_on_the_gpu(new_session):
    """An output stays there and is read by another session and by numpy."""
    model = small_models.model([helper.make_node("Neg", ["x"], ["y"])], [half("x", "N")], [half("y", "N")])
    session, x = new_session(model, providers=["webgpu"]), np.array([1.5, -2, 1e-7, 65504], np.float16)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", OrtValue.ortvalue_from_numpy(x, "webgpu"))
    binding.bind_output("y", "webgpu")
    session.run_with_iobinding(binding)
    (negated,) = binding.get_outputs()
    assert negated.device_name() == "webgpu" and negated.data_type() == "tensor(float16)"
    np.testing.assert_array_equal(negated.numpy(), -x)
    np.testing.assert_array_equal(session.run(None, {"x": negated})[0], x)


#: Chains of float16, float32 and bools: float32 holds more than 65504, float16 does not.
MIXED = {
    "count of truths": "g = Greater(h, k)  c = Cast<to=1>(g)  m = Mul(c, million)  y = ReduceSum<keepdims=1>(m, last)",
    "float32 chosen by float16": "n = Neg(h)  g = Less(n, k)  w = Where(g, f, million)  y = Sub(w, million)",
    "float16 chosen by float32": "a = Abs(f)  g = Less(a, million)  w = Where(g, h, k)  y = Add(w, w)",
    "float16 numbers": "n = Not(b)  w = Where(n, k, large)  y = Add(w, w)",
    "masks": "n = Not(b)  c = Cast<to=1>(n)  s = Sub(million, c)  y = Mul(s, million)",
}


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("nodes", MIXED.values(), ids=MIXED)
def test_each_value_has_its_own_type(new_session, nodes, provider):
    constants = {"k": np.float16(0.5), "large": np.float16(4e4), "million": np.float32(1e6), "last": np.array([-1])}
    used = {name: value for name, value in constants.items() if name in re.findall(r"\w+", nodes)}
    kind = "float16" if nodes.endswith("Add(w, w)") else "float"
    given = {"h": "float16[4,n]", "f": "float[4,n]", "b": "bool[4,n]"}
    inputs = ", ".join(f"{given[name]} {name}" for name in given if re.search(rf"\b{name}\b", nodes))
    model = parse(f"g ({inputs}) => ({kind}[a,c] y) {{ {nodes} }}", used).SerializeToString()
    feeds = {"h": RNG.uniform(-2, 2, (4, 33)).astype(np.float16), "b": RNG.uniform(size=(4, 33)) < 0.5}
    feeds["f"] = RNG.uniform(-2e6, 2e6, (4, 33)).astype(np.float32)
    session = new_session(model, providers=[provider])
    feeds = {arg.name: feeds[arg.name] for arg in session.get_inputs()}
    (wanted,), (found,) = native(model, feeds), session.run(None, feeds)
    assert session.get_outputs()[0].type == f"tensor({kind})" and found.dtype == wanted.dtype
    np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=2e-3)


MEAN = "q = ReduceMean<keepdims=1>(p, last)  e = Add(q, tiny)  s = Sqrt(e)  d = Div(x, s)  y = Mul(d, w)"
SUM = "u = ReduceSum<keepdims=1>(p, last)  v = Div(u, n)  s = Sqrt(v)  y = Div(x, s)"
#: Numbers beyond 65504 between nodes: native keeps float32 there.
LARGE = {
    "squares, mean": f"p = Pow(x, two)  {MEAN}",
    "squares, sum": f"p = Mul(x, x)  {SUM}",
    "powers": "l = Div(x, n)  p = Exp(l)  r = Identity(p)  u = ReduceSum<keepdims=1>(r, last)  y = Div(p, u)",
    "three": "p = Sum(z, z, z)  y = Mul(p, tiny)",
    "a product": "m = MatMul(z, square)  t = Transpose(m)  a = Mul(t, tiny)  y = Softmax(a)",
    "Casts": "p = Mul(z, z)  f = Cast<to=1>(p)  r = Sqrt(f)  y = Cast<to=10>(r)",
    "to integers": "p = Mul(z, z)  i = Cast<to=7>(p)  j = Div(i, k)  y = Cast<to=10>(j)",
    "in a loop": "y = Loop (three, , x) <body = b (int64 i, bool c, float16[m,8] g) => (bool o, float16[m,8] h) "
    "{ o = Identity(c)  a = Mul(z, z)  q = Sqrt(a)  r = Sqrt(q)  h = Add(r, g) }>",
    "joined in a branch": "c = Sum(z, z)  y = If (yes) <then_branch = t () => (float16[m,8] g) { g = Mul(c, tiny) }, "
    "else_branch = e () => (float16[m,8] h) { h = Mul(c, two) }>",
}


CONSTANTS = {
    **{name: np.float16(number) for name, number in (("two", 2), ("tiny", 1e-3), ("n", 64))},
    **{"last": np.array([-1]), "three": np.int64(3), "k": np.int64(10**5), "yes": np.array(True)},
    **{"w": np.full(8, 0.5, np.float16), "square": np.full((8, 8), 100, np.float16)},
}


@pytest.mark.parametrize("level", [0, 99])
@pytest.mark.parametrize("nodes", LARGE.values(), ids=LARGE)
def test_numbers_between_nodes_of_the_cpu(new_session, nodes, level):
    words = set(re.findall(r"\w+", nodes))
    used = {name: value for name, value in CONSTANTS.items() if name in words}
    model = parse(f"g (float16[m,8] x, float16[m,8] z) => (float16[a,b] y) {{ {nodes} }}", used).SerializeToString()
    feeds = {"x": RNG.uniform(300, 800, (3, 8)), "z": RNG.uniform(2e4, 6e4, (3, 8))}
    feeds = {name: value.astype(np.float16) for name, value in feeds.items()}
    session = new_session(model, providers=["wasm"], graph_optimization_level=level)
    assert session.get_outputs()[0].type == "tensor(float16)"
    (wanted,) = native(model, feeds)
    assert np.isfinite(wanted).all()
    for _ in range(2):
        (found,) = session.run(None, feeds)
        assert found.dtype == np.float16
        np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=2e-3)

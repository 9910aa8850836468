"""Quantized operators on WebNN, each between QuantizeLinear and DequantizeLinear, against native onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from graphs import parse
from standard_form import run_native

import py_ort

CHROMIUM = Path(__file__).parents[2] / "build/webnn/chromium"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium with WebNN is there (make webnn)"),
]
STEP, ZERO = 0.03, -7
X, TINY = "x = DequantizeLinear(q, sx, zx)", "x = DequantizeLinear(q, tiny, zx)"
ROWS = "h = Transpose<perm=[0,2,3,1]>(q) k = Flatten<axis=3>(h) x = DequantizeLinear(k, sx, zx)"


def weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-127, 128, shape).astype(np.int8)


def constants(kind: type) -> dict[str, np.ndarray]:
    """For tensors of int8, or the same plus 128."""
    rng = np.random.default_rng(4)
    moved = 0 if kind is np.int8 else 128
    steps = np.linspace(0.002, 0.01, 8, dtype=np.float32)
    return {
        **{name: np.array(zero + moved, kind) for name, zero in (("zx", ZERO), ("zy", 5), ("low", -128))},
        **{"sx": np.float32(STEP), "sy": np.float32(0.05), "tiny": np.float32(3e-7), "small": np.float32(5e-7)},
        **{"sw": np.float32(0.004), "zw": np.int8(0), "four": np.int8(4), "part": np.float32(1 / 256)},
        **{"steps": steps, "zeros": np.zeros(8, np.int8), "bs": np.float32(STEP) * steps, "bz": np.zeros(8, np.int32)},
        "b": rng.integers(-3000, 3000, 8).astype(np.int32),
        **{"w": weights(rng, 8, 8, 3, 3), "d": weights(rng, 8, 1, 3, 3), "g": weights(rng, 8, 4, 3, 3)},
        **{"e": weights(rng, 16, 1, 3, 3), "p": weights(rng, 8, 8, 1, 1)},
        "m": weights(rng, 8, 8),
        **{"c": (rng.integers(-99, 99, (8, 1, 1)) + moved).astype(kind)},
        **{"from": np.array([1]), "to": np.array([4]), "at": np.array([2])},
    }


# id: (body from the integers q [1, 8, 9, 9] to the floats f; the scale and zero point of f's quantization)
OF_CHANNELS = "v = DequantizeLinear<axis=0>({}, steps, zeros)  o = DequantizeLinear<axis=0>(b, bs, bz)"
OF_ALL = "v = DequantizeLinear({}, sw, {})"
CASES = {
    "pads": (f"{X} {OF_CHANNELS.format('w')} f = Conv<pads=[1,1,1,1]>(x, v, o)", "sy, zy"),
    "uneven pads": (f"{X} {OF_CHANNELS.format('w')} f = Conv<pads=[0,1,1,0], strides=[2,2]>(x, v, o)", "sy, zy"),
    "dilations": (f"{X} {OF_CHANNELS.format('w')} f = Conv<pads=[2,2,2,2], dilations=[2,2]>(x, v, o)", "sy, zy"),
    "ends early": (f"{X} {OF_CHANNELS.format('w')} f = Conv<pads=[1,1,0,0], strides=[3,3]>(x, v, o)", "sy, zy"),
    "depthwise": (f"{X} {OF_CHANNELS.format('d')} f = Conv<group=8, pads=[1,1,1,1]>(x, v, o)", "sy, zy"),
    "groups": (f"{X} {OF_CHANNELS.format('g')} f = Conv<group=2, pads=[1,1,1,1]>(x, v, o)", "sy, zy"),
    "two of each channel": (f"{X} {OF_ALL.format('e', 'zw')} f = Conv<group=8>(x, v)", "sy, zy"),
    "no bias": (f"{X} {OF_ALL.format('p', 'zw')} f = Conv(x, v)", "sy, zy"),
    "weights with a zero point": (f"{X} {OF_ALL.format('w', 'four')} f = Conv(x, v)", "sy, zy"),
    "relu": (f"{X} {OF_CHANNELS.format('w')} h = Conv(x, v, o) f = Relu(h)", "sy, low"),
    "product of a matrix": (
        f"{ROWS} v = DequantizeLinear<axis=1>(m, steps, zeros) f = MatMul(x, v)",
        "sy, zy",
    ),
    "product of a transposed matrix with a bias": (
        f"{ROWS} {OF_CHANNELS.format('m')} f = Gemm<transB=1>(x, v, o)",
        "sy, zy",
    ),
    "sum": (
        f"{X} h = Sigmoid(x) i = QuantizeLinear(h, part, low) j = DequantizeLinear(i, part, low) f = Add(x, j)",
        "sy, zy",
    ),
    "sum with a constant": (f"{X} j = DequantizeLinear(c, sw, zx) f = Add(x, j)", "sy, zy"),
    "product": (f"{X} j = DequantizeLinear(c, sw, zx) f = Mul(x, j)", "sw, zy"),
    "difference": (f"{X} j = DequantizeLinear(c, sw, zx) f = Sub(x, j)", "sy, zy"),
    "scales far apart": (f"{X} j = DequantizeLinear(c, small, zx) f = Add(x, j)", "sy, zy"),
    "largest": (f"{X} f = MaxPool<kernel_shape=[3,3], strides=[2,2]>(x)", "sx, zx"),
    "largest with pads": (f"{X} f = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)", "sx, zx"),
    "largest, apart": (f"{X} f = MaxPool<kernel_shape=[3,3], dilations=[2,2]>(x)", "sx, zx"),
    "largest in other steps": (f"{X} f = MaxPool<kernel_shape=[3,3]>(x)", "sy, zy"),
    "largest in tiny steps": (f"{TINY} f = MaxPool<kernel_shape=[3,3]>(x)", "small, zx"),
    "mean": (f"{X} f = AveragePool<kernel_shape=[3,3]>(x)", "sx, zx"),
    "mean with pads": (f"{X} f = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)", "sx, zx"),
    "mean in other steps": (f"{X} f = AveragePool<kernel_shape=[3,3]>(x)", "sy, zy"),
    "mean in tiny steps": (f"{TINY} f = AveragePool<kernel_shape=[3,3]>(x)", "small, zx"),
    "mean of images": (f"{X} f = GlobalAveragePool(x)", "sw, zx"),
    "joined": (
        f"{X} h = Sigmoid(x) i = QuantizeLinear(h, part, low) j = DequantizeLinear(i, part, low)"
        " f = Concat<axis=1>(x, j, x)",
        "sy, zy",
    ),
    "largest along an axis, in other steps": (f"{X} f = ReduceMax(x, at)", "sy, zy"),
    "part in other steps": (f"{X} f = Slice(x, from, to, at)", "sy, zy"),
    "transposed in other steps": (f"{X} h = Transpose<perm=[0,2,3,1]>(x) f = Identity(h)", "sy, zy"),
    "moved": (f"{X} h = Transpose<perm=[0,2,3,1]>(x) f = Flatten(h)", "sx, zx"),
    "softmax": (f"{X} f = Softmax(x)", "part, low"),
}


@pytest.fixture(scope="module")
def page() -> Iterator[None]:
    """One page for all sessions."""
    tiny = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }", {}, opset=18)
    with py_ort.InferenceSession(tiny.SerializeToString(), providers=["webnn"], browser=str(CHROMIUM)):
        yield


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("kind", [np.int8, np.uint8], ids=["int8", "uint8"])
@pytest.mark.parametrize("case", CASES)
def test_within_a_step_of_onnxruntime(case: str, kind: type) -> None:
    """The second run is a replay."""
    body, how = CASES[case]
    made, first = constants(kind), "tiny, zx" if body.startswith(TINY) else "sx, zx"
    text = f"q = QuantizeLinear(a, {first}) {body} r = QuantizeLinear(f, {how}) y = DequantizeLinear(r, {how})"
    model = parse(f"g (float[1,8,9,9] a) => (float y) {{ {text} }}", made, opset=18)
    feeds = {"a": (np.random.default_rng(9).normal(size=(1, 8, 9, 9)) * 40 * made[first.split(",")[0]]).astype("f4")}
    [wanted] = run_native(model, feeds, optimize=True)
    step = made[how.split(",")[0]]
    with py_ort.InferenceSession(model.SerializeToString(), providers=["webnn"], browser=str(CHROMIUM)) as session:
        for _ in range(2):
            [found] = session.run(None, feeds)
            assert len(np.unique(wanted)) > 3
            np.testing.assert_allclose(found / step, wanted / step, rtol=0, atol=1.01)
        assert {node.provider for node in session.placement().nodes} == {"webnn"}

"""Operators on quantized tensors after others: floats on webgpu, which equal native onnxruntime's within one step."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from graphs import parse

from py_ort import InferenceSession
from py_ort.compiler import compile_model
from py_ort.compiler.passes.fuse import quantized_operators
from py_ort.exceptions import PyOrtError
from py_ort.testing.native_model import NativeModel

WEBNN = Path(__file__).parents[2] / "build/webnn/chromium"
_RNG = np.random.default_rng(3)


def _integers(*shape: int, dtype: str = "uint8") -> np.ndarray:
    kind = np.iinfo(dtype)
    return _RNG.integers(kind.min, kind.max + 1, shape).astype(dtype)


_CONSTANTS = {
    **{"sx": np.float32(0.02137), "sy": np.float32(0.9), "one": np.float32(0.037)},
    **{"zx": np.uint8(117), "zy": np.uint8(101), "zs": np.uint8(3)},
    **{"w": _integers(6, 4, 3, 3, dtype="int8"), "wg": _integers(6, 2, 3, 3), "sw": np.float32(0.01)},
    **{"zw": np.int8(0), "zu": np.uint8(131), "scales": np.linspace(0.005, 0.02, 6, dtype=np.float32)},
    **{"zeros": np.zeros(6, np.int8), "points": np.arange(120, 126).astype(np.uint8)},
    **{"bias": _RNG.integers(-9000, 9000, 6).astype(np.int32), "m": _integers(8, 6, dtype="int8")},
    **{"stack": _integers(2, 4, 8, 5), "turned": _integers(6, 8, dtype="int8"), "other": _integers(4, 1, 1)},
    **{
        "shape": np.array([-1, 8]),
        "number": np.int32(700),
        "sums": _RNG.integers(-9000, 9000, (1, 6)).astype(np.int32),
        "sp": np.float32(0.03),
    },
    **{"share": np.float32(0.0173), "rows": np.arange(-24, 24).astype(np.int32).reshape(48, 1) * 90},
    **{"less": np.float32(0.01), "third": _integers(6, 2, 3, 3, dtype="int8"), "halves": np.array([3, 3])},
}
_FLAT = "f = Reshape(p, shape)"
# Nodes behind p, of [2,4,6,8] and quantized by sx and zx; y is dequantized by the scale and zero point named.
CASES = {
    "conv": ("q = QLinearConv<pads=[1,1,1,1]>(p, sx, zx, w, sw, zw, sy, zy)", "sy, zy"),
    "conv, scales of channels, bias": (
        "q = QLinearConv<strides=[2,2]>(p, sx, zx, w, scales, zeros, sy, zy, bias)",
        "sy, zy",
    ),
    "conv, groups, zero points of channels": (
        "q = QLinearConv<group=2>(p, sx, zx, wg, scales, points, sy, zy, bias)",
        "sy, zy",
    ),
    "conv, one zero point for many scales": ("q = QLinearConv<group=2>(p, sx, zx, wg, scales, zu, sy, zy)", "sy, zy"),
    "two convs": (
        """a = QLinearConv<pads=[1,1,1,1]>(p, sx, zx, w, scales, zeros, sy, zy, bias)
        b = MaxPool<kernel_shape=[2,2]>(a)  q = QLinearConv<group=3>(b, sy, zy, third, sw, zw, sx, zx)""",
        "sx, zx",
    ),
    "product": (f"{_FLAT}  q = QLinearMatMul(f, sx, zx, m, scales, zeros, sy, zy)", "sy, zy"),
    "product of a stack": ("q = QLinearMatMul(p, sx, zx, stack, sw, zu, sy, zy)", "sy, zy"),
    "gemm": (f"{_FLAT}  q = com.microsoft.QGemm(f, sx, zx, m, scales, zeros, sums, sy, zy)", "sy, zy"),
    "gemm, transposed, no C": (
        f"{_FLAT}  q = com.microsoft.QGemm<transB=1>(f, sx, zx, turned, sw, zw, , sy, zy)",
        "sy, zy",
    ),
    "gemm, halved": (f"{_FLAT}  q = com.microsoft.QGemm<alpha=0.5>(f, sx, zx, m, sw, zw, sums, sy, zy)", "sy, zy"),
    "gemm, a number for each row, integers": (
        f"{_FLAT}  q = com.microsoft.QGemm(f, sx, zx, m, scales, zeros, rows, sy, zy)",
        "sy, zy",
    ),
    "gemm, one number for all columns, integers": (
        f"{_FLAT}  q = com.microsoft.QGemm(f, sx, zx, m, scales, zeros, number, sy, zy)",
        "sy, zy",
    ),
    "gemm that gives floats": (f"{_FLAT}  y = com.microsoft.QGemm(f, sx, zx, m, scales, zeros, sums)", ""),
    "add": (
        "t = Relu(x)  u = QuantizeLinear(t, one, zs)  q = com.microsoft.QLinearAdd(p, sx, zx, u, one, zs, sp, zy)",
        "sp, zy",
    ),
    "add of a constant": ("q = com.microsoft.QLinearAdd(p, sx, zx, other, one, zs, sp, zy)", "sp, zy"),
    "mul": ("q = com.microsoft.QLinearMul(p, sx, zx, other, one, zs, sp, zy)", "sp, zy"),
    "sigmoid": ("q = com.microsoft.QLinearSigmoid(p, sx, zx, less, zs)", "less, zs"),
    "pool": ("q = com.microsoft.QLinearAveragePool<kernel_shape=[3,3]>(p, sx, zx, less, zy)", "less, zy"),
    "softmax of a number of steps that is not whole": (
        "q = com.microsoft.QLinearSoftmax<axis=-1, opset=13>(p, sx, zx, share, zs)",
        "share, zs",
    ),
    "pool that counts what lies behind the padding, integers": (
        """q = com.microsoft.QLinearAveragePool<kernel_shape=[3,3], strides=[3,3], ceil_mode=1, count_include_pad=1>(
        p, sx, zx, less, zy)""",
        "less, zy",
    ),
    "global pool": ("q = com.microsoft.QLinearGlobalAveragePool(p, sx, zx, less, zy)", "less, zy"),
    "global pool, channels last": (
        "q = com.microsoft.QLinearGlobalAveragePool<channels_last=1>(p, sx, zx, less, zy)",
        "less, zy",
    ),
    "concat": ("q = com.microsoft.QLinearConcat<axis=1>(sy, zy, p, sx, zx, p, sx, zx)", "sy, zy"),
    "what is moved": (
        """t = Transpose<perm=[0,2,3,1]>(p)  a, b = Split<axis=1>(t, halves)
        q = com.microsoft.QLinearAdd(a, sx, zx, b, sx, zx, sp, zy)""",
        "sp, zy",
    ),
    "moved for integers, too": (
        """t = Transpose<perm=[0,1,3,2]>(p)  c = Cast<to=1>(t)  v = DequantizeLinear(t, sx, zx)
        y = Add(c, v)""",
        "",
    ),
}


def _model(case: str) -> bytes:
    body, how = CASES[case]
    end = f"  y = DequantizeLinear({'q'}, {how})" if how else ""
    text = f"g (float[2,4,6,8] x) => (float y) {{ p = QuantizeLinear(x, sx, zx)  {body}{end} }}"
    used = {name: _CONSTANTS[name] for name in _CONSTANTS if re.search(rf"\b{name}\b", text)}
    return parse(text, used, opset=21).SerializeToString()


@pytest.fixture
def worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small operators become floats, too."""
    monkeypatch.setattr(quantized_operators, "_WORTH", 0)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("case", CASES)
def test_equal_native_within_one_step(new_session, case: str) -> None:
    data = _model(case)
    native, session = NativeModel(data), new_session(data, providers=["webgpu", "wasm"])
    assert not native.trouble
    assert session.placement().counts()["wasm"] == 0
    x = _RNG.normal(0, 1.5, (2, 4, 6, 8)).astype(np.float32)
    (found,), (wanted,) = session.run(None, {"x": x}), native.run({"x": x})
    assert found.shape == wanted.shape and wanted.std() > 0.01
    scale = CASES[case][1].partition(",")[0]
    step = float(np.ravel(_CONSTANTS[scale])[0]) if scale else 1e-3
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1.001 * step)
    assert (np.abs(found - wanted) > step / 2).mean() < 0.01 or case == "pool"


@pytest.mark.skipif(not WEBNN.exists(), reason="no Chromium with WebNN is there (make webnn)")
@pytest.mark.parametrize("worth", [0, quantized_operators._WORTH], ids=["taken apart", "as they are"])
@pytest.mark.parametrize("case", CASES)
def test_equal_native_on_webnn(monkeypatch: pytest.MonkeyPatch, case: str, worth: int) -> None:
    monkeypatch.setattr(quantized_operators, "_WORTH", worth)
    data, x = _model(case), _RNG.normal(0, 1.5, (2, 4, 6, 8)).astype(np.float32)
    scale = CASES[case][1].partition(",")[0]
    step = float(np.ravel(_CONSTANTS[scale])[0]) if scale else 1e-3
    with InferenceSession(data, providers=["webnn"], browser=str(WEBNN)) as session:
        (found,), (wanted,) = session.run(None, {"x": x}), NativeModel(data).run({"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1.001 * step)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize(
    "case", [name for name in CASES if not {"last", "integers"} & set(name.replace(",", "").split())]
)
def test_no_integers_are_written(case: str) -> None:
    nodes = compile_model(_model(case), providers=["webgpu", "wasm"]).placement.nodes
    found = {node.op_type for node in nodes}
    assert not any(name.startswith("Q") for name in found) and not {"DequantizeLinear", "MatMulInteger"} & found


def test_what_is_alone_is_exact(new_session) -> None:
    """A product of integers between an input and an output of the graph stays one."""
    text = "g (uint8[1,4,6,5] x) => (uint8 y) { y = QLinearConv(x, sx, zx, w, sw, zw, sy, zy) }"
    constants = {name: _CONSTANTS[name] for name in ("sx", "zx", "w", "sw", "zw", "sy", "zy")}
    data = parse(text, constants, opset=21).SerializeToString()
    session = new_session(data, providers=["webgpu", "wasm"])
    assert [node.op_type for node in session.placement().nodes if "Conv" in node.op_type] == ["QLinearConv"]
    x = _integers(1, 4, 6, 5)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], NativeModel(data).run({"x": x})[0])


@pytest.mark.parametrize(
    ("shape", "expected"),
    {
        (1, 4, 40, 40): "QLinearConv",
        ("n", 4, 40, 40): "QLinearConv",
        (1, 4, 400, 200): "Conv",
        (1, 4, "h", "w"): "Conv",
    }.items(),
)
def test_what_is_small_stays_integers(shape: tuple[int | str, ...], expected: str) -> None:
    """In a batch of one, although it may have any size: weights are bytes, and sums exact."""
    text = f"""g (float[{",".join(map(str, shape))}] x) => (float y) {{ p = QuantizeLinear(x, sx, zx)
        q = QLinearConv(p, sx, zx, w, sw, zw, sy, zy)  y = DequantizeLinear(q, sy, zy) }}"""
    constants = {name: _CONSTANTS[name] for name in ("sx", "zx", "w", "sw", "zw", "sy", "zy")}
    data = parse(text, constants, opset=21).SerializeToString()
    nodes = compile_model(data, providers=["webgpu", "wasm"]).placement.nodes
    assert [node.op_type for node in nodes if "Conv" in node.op_type] == [expected]


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
def test_scales_of_other_columns_are_refused(new_session, provider: str) -> None:
    """Both by a single product and by one after another operator."""
    constants = {name: _CONSTANTS[name] for name in ("sx", "zx", "sy", "zy")} | {"w": _integers(5, 4, dtype="int8")}
    constants |= {"three": np.full(3, 0.01, np.float32), "zeros": np.zeros(3, np.int8)}
    for before, x in (("", "x"), ("b = com.microsoft.QLinearLeakyRelu(x, sx, zx, sx, zx)", "b")):
        text = f"""g (uint8[2,5] x) => (uint8 y) {{ {before}
            y = QLinearMatMul({x}, sx, zx, w, three, zeros, sy, zy) }}"""
        with pytest.raises(PyOrtError, match=r"\[3\]"):
            new_session(
                parse(text, constants, opset=21).SerializeToString(),
                providers=["wasm"] if provider == "wasm" else ["webgpu", "wasm"],
            ).run(None, {"x": _integers(2, 5)})


@pytest.mark.usefixtures("worth")
def test_a_bias_that_is_fed_brings_nothing_to_the_cpu() -> None:
    text = """g (float[1,4,6,8] x, int32[6] b) => (float y) { p = QuantizeLinear(x, sx, zx)
        q = QLinearConv(p, sx, zx, w, scales, zeros, sy, zy, b)  y = DequantizeLinear(q, sy, zy) }"""
    constants = {name: _CONSTANTS[name] for name in ("sx", "zx", "w", "scales", "zeros", "sy", "zy")}
    data = parse(text, constants, opset=21).SerializeToString()
    nodes = compile_model(data, providers=["webgpu", "wasm"]).placement.nodes
    assert {node.provider for node in nodes} == {"webgpu"}

"""Activations that become the end of a product or convolution, on each of these, and those that stay separate."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

from py_ort.compiler.canonical.canonicalize import canonicalize
from py_ort.compiler.passes.fuse.activation_forms import activation_forms
from py_ort.ir.epilogue import Epilogue

_RANDOM = np.random.default_rng(7)


def _f(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


IMAGE, ROWS, STACK = "float[1,3,6,7] x", "float[5,3] x", "float[2,5,3] x"
# name: (inputs, nodes that make c, constants, remaining operators)
HOSTS = {
    "Conv": (IMAGE, "c = Conv<pads=[1,1,1,1]>(x, w, b)", {"w": _f(4, 3, 3, 3)}, {"nhwc.Conv": 1, "Transpose": 2}),
    "ConvTranspose": (
        IMAGE,
        "c = ConvTranspose<strides=[2,2]>(x, w, b)",
        {"w": _f(3, 4, 2, 2)},
        {"nhwc.ConvTranspose": 1, "Transpose": 2},
    ),
    "Gemm": (ROWS, "c = Gemm(x, w, b)", {"w": _f(3, 4)}, {"Gemm": 1}),
    "MatMul": (STACK, "m = MatMul(x, w)  c = Add(m, b)", {"w": _f(3, 4)}, {"MatMul": 1}),
    "BatchNormalization": (
        IMAGE,
        "d = Conv<pads=[1,1,1,1]>(x, w, b)  c = BatchNormalization(d, b, b, b, v)",
        {"w": _f(4, 3, 3, 3), "v": abs(_f(4)) + 0.5},
        {"nhwc.Conv": 1, "Transpose": 2},
    ),
}
NUMBERS = {"low": np.float32(-0.5), "high": np.float32(0.7), "slope": np.float32([0.2])}
# id: nodes from c to y
ENDS = {
    "Selu": "y = Selu(c)",
    "Selu, with numbers": "y = Selu<alpha=1.5, gamma=0.8>(c)",
    "Celu": "y = Celu(c)",
    "Celu, with a number": "y = Celu<alpha=0.6>(c)",
    "ThresholdedRelu": "y = ThresholdedRelu(c)",
    "ThresholdedRelu, with a number": "y = ThresholdedRelu<alpha=0.4>(c)",
    "Shrink": "y = Shrink(c)",
    "Shrink, with numbers": "y = Shrink<bias=0.2, lambd=0.3>(c)",
    "PRelu of one slope": "y = PRelu(c, slope)",
    "LeakyRelu": "y = LeakyRelu<alpha=0.2>(c)",
    "Elu": "y = Elu<alpha=1.5>(c)",
    "Clip": "y = Clip(c, low, high)",
    "Clip from below": "y = Clip(c, low)",
    "Clip from above": "y = Clip(c, , high)",
    "HardSigmoid": "y = HardSigmoid<alpha=0.3, beta=0.4>(c)",
    **{op: f"y = {op}(c)" for op in ("Relu", "Sigmoid", "Tanh", "HardSwish", "Mish", "Softplus", "Softsign")},
    **{op: f"y = {op}(c)" for op in ("Gelu", "Exp", "Abs")},
    "Gelu by tanh": 'y = Gelu<approximate="tanh">(c)',
    "Swish": "s = Sigmoid(c)  y = Mul(c, s)",
    "Gelu of com.microsoft": "y = com.microsoft.Gelu(c)",
    "FastGelu": "y = com.microsoft.FastGelu(c)",
    "QuickGelu": "y = com.microsoft.QuickGelu<alpha=1.3>(c)",
}


def _text(inputs: str, nodes: str) -> str:
    rank = {IMAGE: 4, ROWS: 2, STACK: 3}[inputs]
    return f"g ({inputs}) => (float[{','.join('klmn'[:rank])}] y) {{ {nodes} }}"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("host", HOSTS)
def test_end(host: str, end: str) -> None:
    inputs, nodes, constants, expected = HOSTS[host]
    model = parse(_text(inputs, f"{nodes}  {ENDS[end]}"), {"b": _f(4), **constants, **NUMBERS})
    assert operators(check_equal(model, compiled(model))) == expected


GELU_OF_MICROSOFT = "com.microsoft.BiasGelu", "com.microsoft.FastGelu"
_SLOPES = _f(4, 1, 1)
# id: (inputs, nodes, constants, remaining operators)
OTHERS = {
    "PRelu with the same slope for each channel": (
        IMAGE,
        "c = Conv(x, w)  y = PRelu(c, p)",
        {"p": np.full((4, 1, 1), 0.25, np.float32)},
        {"nhwc.Conv": 1, "Transpose": 2},
    ),
    "PRelu with slopes of their own": (
        IMAGE,
        "c = Conv(x, w)  y = PRelu(c, p)",
        {"p": _SLOPES},
        {"nhwc.Conv": 1, "PRelu": 1, "Transpose": 2},
    ),
    "PRelu with a slope that is fed": (
        f"{IMAGE}, float[1] p",
        "c = Conv(x, w)  y = PRelu(c, p)",
        {},
        {"nhwc.Conv": 1, "PRelu": 1, "Transpose": 2, "Reshape": 1},
    ),
    "PRelu behind something else": (STACK, "y = PRelu(x, p)", {"p": np.float32(0.1)}, {"LeakyRelu": 1}),
    "Clip with a bound that is fed": (
        f"{IMAGE}, float p",
        "c = Conv(x, w)  y = Clip(c, p)",
        {},
        {"nhwc.Conv": 1, "Clip": 1, "Transpose": 2},
    ),
    "Selu of what is read elsewhere": (
        IMAGE,
        "c = Conv(x, w)  s = Selu(c)  t = Sin(c)  y = Add(s, t)",
        {},
        {"nhwc.Conv": 1, "Selu": 1, "Sin": 1, "Add": 1, "Transpose": 2},
    ),
    "the second of two": (
        IMAGE,
        "c = Conv(x, w)  s = Celu(c)  y = Shrink(s)",
        {},
        {"nhwc.Conv": 1, "Shrink": 1, "Transpose": 2},
    ),
    **{
        f"{op.rpartition('.')[2]} with a bias": (STACK, f"c = MatMul(x, n)  y = {op}(c, b)", {}, {"MatMul": 1})
        for op in GELU_OF_MICROSOFT
    },
    **{
        f"a product with weights of few bits, and a bias that {end} adds": (
            STACK,
            f"c = com.microsoft.MatMulNBits<K=3, N=4, bits=4, block_size=16>(x, q, s)  {end}",
            {"q": _RANDOM.integers(0, 256, (4, 1, 8)).astype(np.uint8), "s": _f(4), "wide": _f(1, 1, 4)},
            {"MatMulNBits": 1, **more},
        )
        for end, more in {
            "y = Add(c, b)": {},
            "y = Add(wide, c)": {},
            "t = Add(c, b)  u = Sin(c)  y = Add(t, u)": {"Add": 2, "Sin": 1},
            **{f"y = {op}(c, b)": {"Gelu": 1} for op in GELU_OF_MICROSOFT},
        }.items()
    },
}


@pytest.mark.parametrize("case", OTHERS)
def test_others(case: str) -> None:
    inputs, nodes, constants, expected = OTHERS[case]
    rank = 4 if inputs.startswith(IMAGE) else 3
    own = {"w": _f(4, 3, 3, 3), "n": _f(3, 4), "b": _f(4)}
    used = {name: x for name, x in own.items() if f" {name})" in nodes}
    model = parse(f"g ({inputs}) => (float[{','.join('klmn'[:rank])}] y) {{ {nodes} }}", {**used, **constants})
    assert operators(check_equal(model, compiled(model))) == expected


@pytest.mark.parametrize(
    "nodes",
    [
        "y = com.microsoft.BiasGelu(x, b)",  # one kernel, and no product to have it as its bias
        "c = MatMul(x, n)  s = Sin(c)  t = com.microsoft.FastGelu(c, b)  y = Add(s, t)",
        "c = MatMul(x, f)  y = com.microsoft.BiasGelu(c, b)",
    ],
)
def test_a_bias_that_stays_with_its_gelu(nodes: str) -> None:
    text = f"g (float[2,5,4] x, float[4,4] f) => (float[2,5,4] y) {{ {nodes} }}"
    model = ir.serde.deserialize_model(parse(text, {"n": _f(4, 4), "b": _f(4)}))
    canonicalize(model)
    assert activation_forms.call(model) == 0


@pytest.mark.parametrize(
    ("clip", "bounds"),
    [("Clip(c, low)", (-0.5, "largest")), ("Clip(c, , high)", ("least", 0.75)), ("Max(c, low)", (-0.5, np.inf))],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_bounds_that_are_not_given(
    clip: str, bounds: tuple[float | str, float | str], dtype: type[np.floating]
) -> None:
    """Clip's default bounds are the largest numbers of its type, to which infinities are clipped, fused or not."""
    name = {np.float32: "float", np.float16: "float16"}[dtype]
    constants = {"w": _f(3, 4).astype(dtype), "low": dtype(-0.5), "high": dtype(0.75)}
    model = parse(f"g ({name}[2,5,3] x) => ({name}[k,l,m] y) {{ c = MatMul(x, w)  y = {clip} }}", constants)
    (host,) = compiled(model).model.graph
    largest = float(np.finfo(dtype).max)
    wanted = [{"largest": largest, "least": -largest}.get(bound, bound) for bound in bounds]
    assert Epilogue.of(host) == Epilogue().then("Clip", wanted)


@pytest.mark.parametrize(
    "product", ["MatMul(x, w)", "com.microsoft.MatMulNBits<K=3, N=4, bits=4, block_size=16>(x, q, s)"]
)
@pytest.mark.parametrize("end", ["Add(p, b)", "Mul(p, b)", "Relu(p)"])
def test_a_product_stays_outside_of_a_loop(product: str, end: str) -> None:
    """In the body it would be computed each time."""
    model = parse(
        f"""g (float[5,3] x, float[5,4] a) => (float[m,n] y) {{
        p = {product}
        y = Loop<body = step (int64 i, bool go, float[5,4] sum) => (bool more, float[5,4] next) {{
            more = Identity(go)  t = {end}  next = Add(sum, t) }}>(times, true, a) }}""",
        {
            **({"w": _f(3, 4)} if "w)" in product else {"q": np.zeros((4, 1, 8), np.uint8), "s": _f(4)}),
            **({"b": _f(4)} if "b)" in end else {}),
            **{"times": np.int64(3), "true": np.True_},
        },
    )
    result = compiled(model)
    (loop,) = (node for node in result.model.graph if node.op_type == "Loop")
    assert any(node.op_type in ("MatMul", "Gemm", "MatMulNBits") for node in result.model.graph)
    assert not any("MatMul" in node.op_type for node in loop.attributes["body"].value)
    feeds = {"x": _f(5, 3), "a": _f(5, 4)}
    for found, wanted in zip(run_native(standard_form(result), feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
